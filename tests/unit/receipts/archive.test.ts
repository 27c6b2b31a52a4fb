import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { encodeArchive } from '../../../src/base/archive-file.ts'
import { ExpiredEntries } from '../../../src/engine/log/expired-entries.ts'
import { isArchive, verifyArchive } from '../../../cli/reflex/receipts/verify.ts'
import type { Session } from '../../../cli/reflex/session.ts'
import { archiveChain } from '../../../src/features/receipts/scope/archive-chain.ts'
import { publicKeys } from '../../../src/features/receipts/keys.ts'
import { checkArchive, gapsIn, type ArchiveFiles } from '../../../src/features/receipts/verify-archive.ts'
import { assertProperty } from '../../support/property.ts'
import { OTHER_KEY } from '../../support/receipts-key.ts'
import { LinkedLog, said } from '../../support/receipts.ts'

const SCOPE = 'test/receipts'
const log = new LinkedLog()
const trusted = publicKeys(log.env)
const folder = mkdtempSync(path.join(tmpdir(), 'reflex-archive-'))
const state = new Map<string, unknown>()
const database = Object.assign(log.database, { read: (key: string, otherwise: unknown) => state.get(key) ?? otherwise })
const expired = new ExpiredEntries({ database, log: log.log })
let number = 0

/** Moves the oldest rows into files, as the archive does, and deletes them. */
async function archived(bytes: number): Promise<ArchiveFiles> {
  const old = expired.oldest({ before: Number.MAX_SAFE_INTEGER, last: Number.MAX_SAFE_INTEGER }, bytes)!
  const [jsonl, parquet] = [...encodeArchive('log', SCOPE, old.lines)]
  const parts = { scope: SCOPE, env: log.env, database }
  const chain = await archiveChain(parts, old.links, { files: { jsonl: jsonl!.sha256, parquet: parquet!.sha256 }, at: log.now })
  const all = (sql: string, ...params: unknown[]) => database.all(sql, ...(params as never[]))
  const unit = { write: (key: string, value: unknown) => state.set(key, value), all }
  expired.remove(unit as never, old.lines.at(-1)!.seq)
  return { name: `${(number += 1)}.jsonl.gz`, jsonl: jsonl!.bytes, parquet: parquet!.bytes, chain }
}

// Rows of many sizes, of which one has a context; two of the words are long enough for two files.
for (const [row, size] of [1, 3, 20, 2, 9].entries()) {
  log.now += 40_000
  const entries = Array.from({ length: size }, (_, at) => said(`wörds 😀 ${row}.${at} ${'x'.repeat(row === 2 ? 300 : 1)}`))
  const context = log.withContext({ event: { id: `e${row}` }, recent_events: ['😀'] })
  await log.write(...entries, { ...said('y'), kind: 'reflex-passed', context } as never)
}
const [one, two] = [await archived(4000), await archived(1_000_000)]
const flawsOf = (file: ArchiveFiles) => checkArchive(file, trusted).flaws
const checkedOf = (file: ArchiveFiles) => checkArchive(file, trusted).checked!

describe('an archived file of a log', () => {
  test('is signed to its last entry, and continues the file before it', () => {
    expect([flawsOf(one), flawsOf(two)]).toEqual([[], []])
    const [first, second] = [checkedOf(one), checkedOf(two)]
    expect(first).toMatchObject({ scope: SCOPE, first: 1, unsigned: 0, keys: ['7db3bd5fa78952e5'] })
    expect(second).toMatchObject({ first: first.last + 1, before: first.hash, last: log.log.last, unsigned: 0 })
    expect(gapsIn([second, first])).toEqual([])
  })

  test('is missing where two others do not follow each other', () => {
    const third = { ...checkedOf(two), first: 100, last: 101, name: 'three' }
    const copy = { ...checkedOf(one), name: 'copy' }
    expect(gapsIn([checkedOf(one), copy])).toEqual([
      expect.stringMatching(/^test\/receipts: copy begins with the entry \d+, which .+ has, too\.$/),
    ])
    expect(gapsIn([checkedOf(one), third])).toEqual([expect.stringMatching(/^test\/receipts: the entries \d+ to 99 are missing\.$/)])
    const other = { ...checkedOf(two), before: '0'.repeat(64) }
    expect(gapsIn([checkedOf(one), other])).toEqual(['test/receipts: 2.jsonl.gz does not continue the chain of 1.jsonl.gz.'])
  })

  test.each<[string, Partial<ArchiveFiles>, RegExp]>([
    ['the chain of another file', { chain: one.chain }, /not have the hash that was signed/],
    ['no chain', { chain: null }, /no \.chain\.json beside it/],
    [
      'the links alone, as an earlier version wrote',
      { chain: JSON.stringify((JSON.parse(two.chain!) as { links: object }).links) },
      /no signed head/,
    ],
    ['another Parquet file', { parquet: one.parquet }, /Its \.parquet does not have the hash/],
    ['other bytes', { jsonl: Buffer.from('x') }, /cannot be read/],
  ])('is refused with %s', (_, change, says) => {
    expect(flawsOf({ ...two, ...change }).join('\n')).toMatch(says)
  })

  test('has several flaws if its words are changed and packed again', () => {
    const text = gunzipSync(two.jsonl).toString().replace('wörds', 'worlds')
    expect(flawsOf({ ...two, jsonl: gzipSync(text) })).toEqual([
      'It does not have the hash that was signed.',
      expect.stringContaining('is not the one that was signed'),
    ])
  })

  test('is refused for a chain of more entries than it has, or bytes that unpack to too many', () => {
    const chain = JSON.parse(one.chain ?? '') as { links: { count: number }[] }
    chain.links[0]!.count = Number.MAX_SAFE_INTEGER
    expect(flawsOf({ ...one, chain: JSON.stringify(chain) })).toContainEqual(
      expect.stringMatching(/^It has \d+ entries, and the chain has \d{16}\.$/),
    )
    const bomb = gzipSync(Buffer.alloc(100_000_001))
    expect(flawsOf({ ...one, jsonl: bomb })).toContainEqual(expect.stringContaining('It cannot be read'))
  })

  test('does not fit keys that are not the ones that signed it', () => {
    expect(checkArchive(two, publicKeys({ REFLEX_RECEIPTS_KEY: OTHER_KEY })).flaws).toEqual([
      'The key 7db3bd5fa78952e5 is not among the keys that are trusted.',
    ])
  })

  test('has a flaw after any change, cut, repetition or swap of its bytes', () => {
    const files = { jsonl: Buffer.from(two.jsonl), parquet: Buffer.from(two.parquet!), chain: Buffer.from(two.chain!) }
    const name = fc.constantFrom('jsonl', 'parquet', 'chain' as const)
    const change = fc.tuple(name, fc.nat(), fc.integer({ min: 1, max: 255 }), fc.constantFrom('change', 'cut', 'repeat', 'swap' as const))
    assertProperty(
      'receipts: any change of an archive',
      fc.property(change, ([which, place, by, how]) => {
        const bytes = Buffer.from(files[which])
        const at = place % bytes.length
        const other = (at + by) % bytes.length
        const swapped = () => {
          const copy = Buffer.from(bytes)
          ;[copy[at], copy[other]] = [bytes[other]!, bytes[at]!]
          return copy
        }
        const changed = {
          change: () => (bytes.writeUInt8(bytes[at]! ^ by, at), bytes),
          cut: () => bytes.subarray(0, at),
          repeat: () => Buffer.concat([bytes.subarray(0, at + 1), bytes.subarray(at)]),
          swap: swapped,
        }[how]()
        if (changed.equals(files[which])) return
        const given = { ...files, [which]: changed }
        expect(flawsOf({ ...given, name: 'x', chain: given.chain.toString() })).not.toEqual([])
      }),
      { numRuns: 1000 },
    )
  })
})

describe('files on a disk', () => {
  const day = path.join(folder, 'log', 'day=2026-11-26', 'test~2freceipts')
  const write = (stem: string, file: ArchiveFiles, at = day) => {
    mkdirSync(at, { recursive: true })
    writeFileSync(path.join(at, `${stem}.jsonl.gz`), file.jsonl)
    writeFileSync(path.join(at, `${stem}.parquet`), file.parquet!)
    if (file.chain !== null) writeFileSync(path.join(at, `${stem}.chain.json`), file.chain)
    return path.join(at, `${stem}.jsonl.gz`)
  }
  const keys = path.join(folder, 'keys.json')
  writeFileSync(keys, JSON.stringify(trusted))
  const files = [write('00000001', one), write('00000003', two)]
  mkdirSync(path.join(folder, 'events', 'day=2026-11-26'), { recursive: true })
  writeFileSync(path.join(folder, 'events', 'day=2026-11-26', '00000002.jsonl.gz'), gzipSync('{}\n'))

  const verified = async (...names: string[]) => {
    const results: { ok: boolean; flaws: string[]; files: object[] }[] = []
    const lines: string[] = []
    const result = (value: unknown, text: (paint: (colour: string, of: string) => string) => string[]) => {
      results.push(value as never)
      lines.push(...text((_, of) => of))
    }
    const exit = await verifyArchive({ print: { result } } as unknown as Session, names, keys)
    return { exit, lines, ...results[0]! }
  }

  test('are all checked of a folder, without files that are no log', async () => {
    expect(isArchive(folder)).toBe(true)
    const { ok, exit, files: found, lines } = await verified(folder)
    expect([ok, exit, found.length, lines]).toEqual([true, undefined, 2, files.map((name) => expect.stringContaining(`✓ ${name}`))])
    expect(await verified(files[1]!)).toMatchObject({ ok: true })
    const parts = ['.jsonl.gz', '.chain.json', '.parquet'].map((ending) => files[1]!.replace('.jsonl.gz', ending))
    expect(parts.map(isArchive)).toEqual([true, true, true])
    expect(await verified(...parts)).toMatchObject({ ok: true, files: [{ name: files[1] }] })
  })

  test('are refused if one was taken away, or the chain of one', async () => {
    const other = path.join(folder, 'other', 'log', 'day=2026-11-26')
    write('00000001', one, other)
    write('00000003', { ...two, chain: null }, other)
    expect(await verified(path.join(folder, 'other'))).toMatchObject({
      ok: false,
      exit: 1,
      flaws: [expect.stringContaining('no .chain.json')],
    })
  })

  test('are checked, and named where they fit, although another cannot be read', async () => {
    const other = path.join(folder, 'unread', 'log', 'day=2026-11-26')
    const good = write('00000001', one, other)
    mkdirSync(path.join(other, '00000003.jsonl.gz'))
    const { exit, flaws, lines } = await verified(path.join(folder, 'unread'))
    expect([exit, flaws]).toEqual([1, [expect.stringMatching(/00000003\.jsonl\.gz: It cannot be read: EISDIR/)]])
    expect(lines).toEqual([expect.stringContaining('✗ '), expect.stringContaining(`✓ ${good}`)])
  })

  test('are checked by the verifier in Python', () => {
    const python = (...given: string[]) => spawnSync('python3', ['-B', 'examples/verify/verify.py', ...given], { encoding: 'utf8' })
    for (const file of files)
      expect(python(file, keys)).toMatchObject({ status: 0, stdout: expect.stringMatching(/entries signed, 0 .*\nOK\n$/) })
    const bad = path.join(folder, 'bad')
    const text = gunzipSync(two.jsonl).toString().replace('wörds', 'worlds')
    for (const [stem, change] of Object.entries({
      entries: { jsonl: gzipSync(text) },
      parquet: { parquet: one.parquet },
      chain: { chain: one.chain },
      seal: { chain: two.chain!.replace('"splits":[null', '"splits":[0') },
      none: { chain: null },
    }))
      expect([stem, python(write(stem, { ...two, ...change }, bad), keys)]).toEqual([
        stem,
        expect.objectContaining({ status: 1, stdout: expect.stringContaining('FLAW') }),
      ])
  })
})
