import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HeldText } from '../../../../src/skills/model/held-text.ts'
import { readText } from '../../../../src/skills/model/intents.ts'
import { partsOf, proposal, resultOf, streamOf, world } from '../../standalone/fixtures.ts'
import { MockLanguageModelV4 } from 'ai/test'
import { assertProperty } from '../../../support/property.ts'

const block = proposal('milk')
const pieces = fc.constantFrom(
  'Hello ',
  block,
  `\`${block}\``,
  '<',
  '<SKILL',
  '</',
  '\n',
  '```\n',
  '> ',
  'a < b ',
  '<SKILL_RESULT>',
  '<CLARIFY>',
)
const texts = fc.array(pieces, { maxLength: 8 }).map((all) => all.join(''))
const cuts = fc.array(fc.nat(2000), { maxLength: 12 })

function passed(text: string, places: readonly number[]): { held: HeldText; pieces: string[] } {
  const held = new HeldText()
  const at = [0, ...places.map((place) => place % (text.length + 1)).toSorted((left, right) => left - right), text.length]
  return { held, pieces: at.slice(1).map((end, index) => held.push(text.slice(at[index], end))) }
}

describe('a text that streams in', () => {
  test('passes the same however it is cut, and never a part of what is acted upon', () => {
    assertProperty(
      'skills/model/held-text: held',
      fc.property(texts, cuts, (text, places) => {
        const { held, pieces } = passed(text, places)
        const shown = pieces.join('')
        expect(held.whole).toBe(text)
        expect(text.startsWith(shown)).toBe(true)
        expect(held.passed).toBe(shown.length)
        const { visible } = readText(text)
        expect(visible.startsWith(shown)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  test('passes at once where no block can begin', () => {
    expect(passed('one <two> three < four', [5, 9]).pieces.join('')).toBe('one <two> three < four')
    expect(passed(`Saving. ${block}`, [3]).pieces).toEqual(['Sav', 'ing. '])
    expect(passed('a <SKILL_', []).pieces).toEqual(['a '])
  })
})

describe('a streamed turn', () => {
  test('comes to the same whatever the pieces are: in the middle of a tag too', async () => {
    await assertProperty(
      'skills/model/held-text: streamed',
      fc.asyncProperty(texts, cuts, async (text, places) => {
        const streamed = await turnOf(text, places)
        const whole = await turnOf(text, null)
        expect(streamed).toEqual(whole)
      }),
      { numRuns: 100 },
    )
  })
})

/** The text that the caller sees and that is saved, streamed at the cuts or whole. */
async function turnOf(text: string, places: readonly number[] | null): Promise<{ text: string; saved: string[] }> {
  const { reflex, saved } = world()
  const answers = [resultOf(text), resultOf('Done.'), resultOf('Done.')]
  const doStream = answers.map((answer) => ({ stream: streamOf(partsOf(answer, places ?? [])) }))
  const model = reflex.wrapModel(new MockLanguageModelV4({ doGenerate: answers, doStream }))
  const asked = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'a note' }] }] }
  let said = ''
  if (places === null) {
    for (const part of (await model.doGenerate(asked)).content) if (part.type === 'text') said += part.text
    return { text: said, saved }
  }
  for await (const part of (await model.doStream(asked)).stream) if (part.type === 'text-delta') said += part.delta
  return { text: said, saved }
}
