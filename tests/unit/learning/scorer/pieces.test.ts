import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Saw } from '../../../../src/features/learning/episode.ts'
import { isRecent, namedPieces, piecesOf, piecesSource } from '../../../../src/features/learning/reflexes/scorer/pieces.ts'
import { QuickJsSandbox } from '../../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext } from '../../../../src/reflexes/reflex-context.ts'
import { assertProperty } from '../../../support/property.ts'
import { sandboxModule } from '../../../support/sandbox-module.ts'
import { anySaw, sawWith } from './saws.ts'

const sandbox = new QuickJsSandbox(sandboxModule, { now: () => 0 })
const digestOf = (pieces: Uint32Array): number[] => {
  let hash = 0
  for (const piece of pieces) hash = (hash * 31 + (piece % 65_521)) % 1_000_003
  return [pieces.length, hash]
}
const DIGEST = `
function reflex(context) {
  const found = new Set()
  eachPiece(context, (piece) => found.add(piece >>> 0))
  const pieces = [...found].sort((one, other) => one - other)
  let hash = 0
  for (const piece of pieces) hash = (hash * 31 + (piece % 65521)) % 1000003
  return { digest: [pieces.length, hash] }
}
`
const program = { hash: 'pieces', code: `${piecesSource({ recent: true })}\n${DIGEST}` }
const digestInSandbox = (saw: Saw): unknown => sandbox.run(program, { ...sampleContext, ...saw }).value

const saidOf = (saw: Saw): string[] =>
  [...namedPieces(saw).values()].map((piece) => {
    if (piece.is === 'follows') return `follows ${piece.types}`
    const what = piece.is === 'says' ? piece.words : piece.is === 'spells' ? piece.letters : piece.is === 'present' ? '' : piece.value
    return `${piece.is} ${piece.path.join('.')} ${JSON.stringify(what)}`
  })

describe('the pieces of a context', () => {
  test('are words, two words in a row, and two to five letters of a word with its ends', () => {
    const said = saidOf(sawWith({ text: 'My cards' }))
    for (const piece of ['says event.text "my"', 'says event.text "^ my"', 'says event.text "my cards"', 'spells event.text " m"'])
      expect(said).toContain(piece)
    for (const piece of ['spells event.text "ards "', 'spells event.text " my "', 'equal event.text "My cards"', 'present event.text ""'])
      expect(said).toContain(piece)
    expect(said).not.toContain('spells event.text "y c"')
    expect(said).not.toContain('spells event.text " cards"')
  })

  test('are short values, items of lists, the presence of fields and the last types', () => {
    const saw = sawWith({ state: 'open', labels: ['red', 3], count: 7, deep: { on: true } })
    const said = saidOf({ ...saw, scratch: { mood: null }, recent_events: [...saw.recent_events, ...saw.recent_events] })
    expect(said).toEqual(
      expect.arrayContaining([
        'equal event.state "open"',
        'contains event.labels "red"',
        'contains event.labels 3',
        'present event.count ""',
        'equal event.deep.on true',
        'equal scratch.mood null',
        'follows ws.message ws.message',
      ]),
    )
    expect(said.some((piece) => piece.startsWith('equal event.count'))).toBe(false)
    expect(said.some((piece) => piece.startsWith('spells event.state'))).toBe(false)
  })

  test('have no name or time of the event, and no number of a text', () => {
    const said = saidOf(sawWith({ text: 'pay 1500 to 7', id: 'secret', timestamp: 'then' }))
    expect(said).toContain('says event.text "pay ####"')
    expect(said.filter((piece) => /secret|then|1500/.test(piece) && !piece.startsWith('equal event.text'))).toEqual([])
  })

  test('of the recent events alone are marked as such', () => {
    const saw = sawWith({ text: 'to do' })
    for (const [hash, piece] of namedPieces({ ...saw, recent_events: [saw.recent_events, saw.recent_events].flat() }))
      expect([piece, isRecent(hash)]).toEqual([piece, piece.is === 'follows'])
  })

  test('of a long text are bounded', () => {
    const long = Array.from({ length: 2000 }, (_, index) => `word${String.fromCharCode(97 + (index % 26), 97 + (index % 25))}`).join(' ')
    expect(piecesOf(sawWith({ text: long })).length).toBeLessThan(3000)
    expect(piecesOf(sawWith({ text: 'x'.repeat(1e6) })).length).toBeLessThan(3000)
  })

  test('are named by the same hashes', () => {
    const saw = sawWith({ text: 'Where is my card? 😀 ÄÖ' })
    expect(Uint32Array.from(namedPieces(saw).keys()).sort()).toEqual(piecesOf(saw))
  })

  test('are the same in the sandbox', () => {
    assertProperty(
      'learning/scorer/pieces',
      fc.property(anySaw, (saw) => {
        expect(digestInSandbox(saw)).toEqual({ digest: digestOf(piecesOf(saw)) })
      }),
      { numRuns: 300 },
    )
  })

  test('are the same in the sandbox for a long text, for many texts, and for what an item lacks', () => {
    const text = 'Grüße an 漢字 und 1.234,5 cards '
    for (const saw of [
      sawWith({ text: text.repeat(500) }),
      sawWith({ text: '漢字かな交じり文'.repeat(100) }),
      sawWith({ lines: [{ receipt: null, by: 'me' }, null] }),
      sawWith(Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`field${index}`, `${text} ${index}`]))),
    ])
      expect(digestInSandbox(saw)).toEqual({ digest: digestOf(piecesOf(saw)) })
  })
})
