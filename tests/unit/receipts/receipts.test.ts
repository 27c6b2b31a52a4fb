import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import * as fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { pathOf, rootAbove, rootOf } from '../../../src/features/receipts/chain.ts'
import { publicKeys } from '../../../src/features/receipts/keys.ts'
import { provenAt } from '../../../src/features/receipts/prove.ts'
import { checkReceipt, forksIn } from '../../../src/features/receipts/verify.ts'
import { OTHER_KEY } from '../../support/receipts-key.ts'
import { assertProperty } from '../../support/property.ts'
import { saltedMask, saltOf } from '../../../src/traces/keyed-hash.ts'
import { LinkedLog, REDACTION_SECRET, said, sampleLog, TRACE } from '../../support/receipts.ts'

const linked = await sampleLog()
const file = await linked.receipt()
const trusted = publicKeys(linked.env)
type Entry = { seq: number; text: string }
type Segment = { rows: [{ count: number }, ...object[]]; head: { seq: number; signature: string } }
/** A file that a test changes. */
type Loose = {
  receipt: number
  trace_id: string
  scopes: [{ scope: string; entries: [Entry, Entry, Entry, Entry]; segments: [Segment, ...Segment[]] }]
}
const changed = (change: (value: Loose) => void): string => {
  const value = JSON.parse(file) as Loose
  change(value)
  return JSON.stringify(value)
}
const flawsOf = (text: string): string[] => checkReceipt(text, trusted).flaws

/** Leaves out a row between two others. */
const withoutRow = (value: Loose) => value.scopes[0].segments.find(({ rows }) => rows.length > 2)?.rows.splice(1, 1)

describe('a receipt', () => {
  test('fits its keys, and says of each entry that it is signed', () => {
    const { flaws, checked } = checkReceipt(file, trusted)
    expect(flaws).toEqual([])
    const standing = [...checked!.scopes[0]!.standing.values()]
    expect(standing.length).toBeGreaterThan(9)
    expect(new Set(standing)).toEqual(new Set(['signed']))
  })

  test('shows nothing of entries of other traces', () => {
    const { entries } = JSON.parse(file).scopes[0] as { entries: { text: string }[] }
    expect(entries.every(({ text }) => text.includes('a'.repeat(32)))).toBe(true)
    expect(file).not.toContain('b'.repeat(32))
  })

  test('does not fit keys that are not the ones that signed it', () => {
    const { keys } = publicKeys({ REFLEX_RECEIPTS_KEY: OTHER_KEY })
    expect(checkReceipt(file, { keys }).flaws).toEqual(['The key 7db3bd5fa78952e5 is not among the keys that are trusted.'])
  })

  test.each([
    [
      'another word in an entry',
      (value: Loose) => (value.scopes[0].entries[3].text = value.scopes[0].entries[3].text.replace('words', 'worlds')),
    ],
    ['an entry left in another place', (value: Loose) => (value.scopes[0].entries[3].seq += 1)],
    ['a row left out', withoutRow],
    ['another number of entries in a row', (value: Loose) => (value.scopes[0].segments[0].rows[0].count += 1)],
    ['another head', (value: Loose) => (value.scopes[0].segments[0].head.seq += 1)],
    ['another signature', (value: Loose) => (value.scopes[0].segments[0].head.signature = '0'.repeat(128))],
    ['another scope', (value: Loose) => (value.scopes[0].scope = 'test/other')],
    ['another trace', (value: Loose) => (value.trace_id = 'c'.repeat(32))],
  ])('that was changed has two flaws: in the chain, and at the seal (%s)', (_, change) => {
    const flaws = flawsOf(changed(change))
    expect(flaws).toContain('The seal does not fit the bytes of the file: something in it was changed.')
    expect(flaws.length).toBeGreaterThan(1)
  })

  test.each([
    ['that was cut off', file.slice(0, -10), 'not a JSON object'],
    ['of a later version', changed((value) => (value.receipt = 2)), 'Use a newer one'],
    ['that was written again', JSON.stringify(JSON.parse(file), null, 2), 'does not end with its seal'],
  ])('%s is refused in a sentence', (_, text, sentence) => {
    expect(flawsOf(text).join('\n')).toContain(sentence)
  })

  test('leaves out the context of an entry, whose hash still leads to the head', async () => {
    const log = new LinkedLog()
    const context = log.withContext({ event: { id: 'e1' }, recent_events: [], secret_of_others: 'words of a neighbour' })
    await log.write({ ...said('x'), kind: 'reflex-passed', context } as never)
    const [with_context, without] = [await log.receipt(), await log.receipt({ shows: () => false })]
    expect(with_context).toContain('words of a neighbour')
    expect(without).not.toContain('words of a neighbour')
    for (const text of [with_context, without]) expect(checkReceipt(text, trusted).flaws).toEqual([])
    expect([...checkReceipt(without).checked!.scopes[0]!.standing.values()]).toEqual(['partly'])
  })
})

describe('a masked value', () => {
  const log = new LinkedLog()
  const started = (input: unknown) =>
    ({
      ...said(''),
      kind: 'effect-started',
      effect_id: 'e',
      tool: 'log.in',
      input: log.log.clean(input, TRACE),
      cause: { by: 'turn' },
    }) as never
  const proofs = async (value: unknown, salt: string, text?: string) => {
    const { flaws, checked } = checkReceipt(text ?? (await log.receipt()), trusted)
    expect(flaws).toEqual([])
    return provenAt(checked!, { value, salt })
  }
  const salt = saltOf(REDACTION_SECRET, '0712')

  beforeAll(async () => {
    await log.write(started({ user: 'bob', password: '0712' }), said('I took 0712 as the password'))
  })

  test('is proved by who has it and its salt: where the log has it, and where a text quotes it', async () => {
    const at = { scope: 'test/receipts', signed: true }
    expect(await proofs('0712', salt)).toEqual([
      { ...at, seq: 1, kind: 'effect-started', field: 'input.password', whole: true },
      { ...at, seq: 2, kind: 'reply-sent', field: 'content', whole: false },
    ])
  })

  test('is proved neither by another value, nor by a salt that is not its own', async () => {
    expect(await proofs('0713', salt)).toEqual([])
    expect(await proofs(712, salt)).toEqual([])
    expect(await proofs('0712', saltOf(REDACTION_SECRET, '0713'))).toEqual([])
    expect(await proofs('0712', saltOf('another secret of a deployment', '0712'))).toEqual([])
  })

  test('is not proved by an entry that a newer mask hides: the file has its hash alone', async () => {
    const hidden = new LinkedLog({ sqlite: log.sqlite })
    hidden.log.showBy(({ text }) => text.replace('"bob"', '"[redacted]"'))
    expect((await proofs('0712', salt, await hidden.receipt())).map(({ signed }) => signed)).toEqual([false, true])
  })

  test('of few possible ones is found by no guess of somebody who has the receipt alone', async () => {
    const text = await log.receipt()
    const masks = text.match(/sha256:[\da-f]{64}/g)!
    // As a word: four digits also occur inside the hashes and signatures, by chance.
    expect(text).not.toMatch(/\b0712\b/)
    expect(text).not.toContain(salt)
    const [seen] = masks
    // All that the file shows as a salt, and an absent one, with each PIN that there is.
    const salts = ['', ...Array.from(text.matchAll(/"salt":"([\da-f]+)"/g), ([, shown = '']) => shown)]
    for (const guess of salts)
      for (let pin = 0; pin < 10_000; pin += 1) expect(saltedMask(guess, String(pin).padStart(4, '0')) === seen).toBe(false)
  })
})

test('a receipt of ten megabytes is checked, and one changed letter in it is noticed', async () => {
  const log = new LinkedLog()
  for (let row = 0; row < 1400; row += 1) {
    log.now = row * 500
    await log.write(said(`row ${row}: ${'words '.repeat(1250)}`), said('of another trace', 'b'.repeat(32)))
  }
  const large = await log.receipt()
  expect(large.length).toBeGreaterThan(10_000_000)
  const { flaws, checked } = checkReceipt(large, trusted)
  expect(flaws).toEqual([])
  expect(checked!.scopes[0]!.standing.size).toBe(1400)
  expect(flawsOf(large.replace('row 700: words', 'row 700: swords'))).not.toEqual([])
})

describe('heads', () => {
  test('are signed for the first row of each minute, and kept in a row that is written anyway', async () => {
    const log = new LinkedLog()
    for (let row = 0; row < 12; row += 1) {
      log.now = row * 20_000
      await log.write(said(`row ${row}`))
    }
    const rows = log.sqlite.prepare('SELECT seq, head FROM log ORDER BY seq').all()
    const heads = rows.flatMap(({ head }) => (head === null ? [] : [(JSON.parse(String(head)) as { seq: number }).seq]))
    expect(rows).toHaveLength(12)
    expect(heads).toEqual([1, 4, 7, 10])
  })

  test('need no statement of their own: each row is one insertion, with its hash and an earlier head', async () => {
    const log = new LinkedLog()
    log.statements.length = 0
    for (let row = 0; row < 6; row += 1) {
      log.now = row * 60_000
      await log.write(said(`row ${row}`))
    }
    const insertion = 'INSERT INTO log (seq, at, counts, entries, chain, head) VALUES (?, ?, ?, ?, ?, ?)'
    expect(log.statements).toEqual(Array.from({ length: 6 }, () => insertion))
    expect(log.sqlite.prepare('SELECT count(head) AS heads FROM log').get()).toEqual({ heads: 5 })
  })

  test('are lost with the process that signed them, and the chain is not', async () => {
    const log = new LinkedLog()
    await log.write(said('before'))
    log.open()
    await log.write(said('after'))
    expect(log.sqlite.prepare('SELECT head FROM log').all()).toEqual([{ head: null }, { head: null }])
    expect(checkReceipt(await log.receipt(), trusted).flaws).toEqual([])
  })

  test('stay valid after their key was replaced: the file names both keys', async () => {
    const log = new LinkedLog()
    await log.write(said('first'))
    await log.write(said('second', 'b'.repeat(32)))
    const {
      keys: [old],
    } = JSON.parse(log.env.REFLEX_RECEIPTS_KEY) as { keys: [{ d?: string }] }
    const {
      keys: [made],
    } = JSON.parse(OTHER_KEY) as { keys: [object] }
    const { d: _private, ...published } = old
    const key = JSON.stringify({ keys: [made, { ...published, until: '2026-11-20T00:00:00.000Z' }] })
    const rotated = new LinkedLog({ key, sqlite: log.sqlite })
    rotated.now = 90_000
    await rotated.write(said('third'))
    const { flaws, checked } = checkReceipt(await rotated.receipt(), publicKeys(rotated.env))
    expect(flaws).toEqual([])
    expect(checked?.keys.toSorted()).toEqual(['56475aa75463474c', '7db3bd5fa78952e5'])
    expect(checked?.scopes[0]?.heads.map(({ key }) => key)).toEqual(['7db3bd5fa78952e5', '56475aa75463474c'])
  })
})

test('a scope that was restored to an earlier time has two logs, which two receipts show', async () => {
  const log = new LinkedLog()
  await log.write(said('before'))
  await log.write(said('undone'))
  const undone = await log.receipt()
  log.sqlite.exec('DELETE FROM log WHERE seq > 1')
  log.open()
  await log.write(said('written instead'))
  const later = await log.receipt()
  await log.write(said('and more'))
  const checked = [undone, later, await log.receipt()].map((text) => checkReceipt(text, trusted))
  expect(checked.flatMap(({ flaws }) => flaws)).toEqual([])
  const [first, second, third] = checked.map((one) => one.checked!)
  expect(forksIn([first!, second!])).toEqual([
    'test/receipts: the files have two logs, which differ at the entry 2: it was restored or written again.',
  ])
  expect(forksIn([second!, third!])).toEqual([])
})

test('a path leads to the root from each leaf of a tree of any size, and from no other place', () => {
  for (let count = 1; count < 90; count += 1) {
    const leaves = Array.from({ length: count }, (_, at) => Buffer.alloc(32, at + 1))
    const root = Buffer.from(rootOf(leaves))
    for (let index = 0; index < count; index += 1) {
      const path = pathOf(leaves, index)
      expect(Buffer.from(rootAbove(leaves[index], { index, count, path })!).equals(root)).toBe(true)
      const wrong = rootAbove(leaves[index], { index: (index + 1) % count, count, path })
      expect(count === 1 || wrong === null || !Buffer.from(wrong).equals(root)).toBe(true)
    }
  }
})

describe('the verifier in Python', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'receipts-'))
  const python = spawnSync('python3', ['--version']).status === 0
  const verified = (text: string) => {
    writeFileSync(path.join(folder, 'receipt.json'), text)
    writeFileSync(path.join(folder, 'keys.json'), JSON.stringify(trusted))
    const files = [path.join(folder, 'receipt.json'), path.join(folder, 'keys.json')]
    return spawnSync('python3', ['-B', 'examples/verify/verify.py', ...files], { encoding: 'utf8' })
  }

  test.skipIf(!python)(
    'accepts what Node accepts, and counts the same entries',
    () => {
      const { status, stdout, stderr } = verified(file)
      expect(stderr).toBe('')
      expect(stdout).toMatch(/^test\/receipts: \d+ entries signed, 0 signed by their hash alone, 0 not signed\nOK\n$/)
      expect(status).toBe(0)
    },
    120_000,
  )

  test.skipIf(!python).each([
    ['another word', changed((value) => (value.scopes[0].entries[0].text = value.scopes[0].entries[0].text.replace('words', 'worlds')))],
    ['a row left out', changed(withoutRow)],
    ['a file cut off', file.slice(0, -10)],
    ['a later version', changed((value) => (value.receipt = 2))],
  ])(
    'refuses what Node refuses (%s)',
    (_, text) => {
      const { status, stdout } = verified(text)
      expect(stdout).toContain('FLAW')
      expect(status).toBe(1)
      expect(flawsOf(text)).not.toEqual([])
    },
    120_000,
  )
})

test('no change, cut or swap of bytes goes undetected', () => {
  const bytes = Buffer.from(file)
  const place = fc.nat(bytes.length - 1)
  const change = fc.oneof(
    fc.record({ kind: fc.constant('flip' as const), at: place, by: fc.integer({ min: 1, max: 255 }) }),
    fc.record({ kind: fc.constant('cut' as const), at: place, by: fc.integer({ min: 1, max: 500 }) }),
    fc.record({ kind: fc.constant('swap' as const), at: place, by: fc.integer({ min: 1, max: bytes.length - 1 }) }),
  )
  const isDetected = fc.property(change, ({ kind, at, by }) => {
    const made = Buffer.from(bytes)
    if (kind === 'flip') made[at]! ^= by
    const other = (at + by) % bytes.length
    if (kind === 'swap') [made[at], made[other]] = [made[other]!, made[at]!]
    const result = kind === 'cut' ? Buffer.concat([made.subarray(0, at), made.subarray(at + by)]) : made
    return result.equals(bytes) || flawsOf(result.toString()).length > 0
  })
  expect(() => assertProperty('receipts: any change', isDetected, { numRuns: 400 })).not.toThrow()
}, 120_000)
