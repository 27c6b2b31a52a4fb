import * as fc from 'fast-check'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { limits } from '../../../src/base/limits.ts'
import type { NewEntry } from '../../../src/contract/log-entry.ts'
import type { Database } from '../../../src/kernel/unit.ts'
import { Log, unpack, type PackedText, linesOf } from '../../../src/engine/log/log.ts'
import { ContextJson } from '../../../src/reflexes/context/context-json.ts'
import { keyedMask } from '../../../src/traces/keyed-hash.ts'
import { scopeHead } from '../../../src/engine/log/spans.ts'
import { assertProperty } from '../../support/property.ts'

const opened = (options: ConstructorParameters<typeof Log>[2] = {}) => {
  const sqlite = new DatabaseSync(':memory:')
  sqlite.exec('CREATE TABLE log (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, counts TEXT, entries TEXT NOT NULL, chain BLOB, head TEXT)')
  // node:sqlite takes no ArrayBuffer.
  const bound = (value: SQLInputValue | ArrayBuffer) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value)
  const all = (sql: string, ...params: (SQLInputValue | ArrayBuffer)[]) => sqlite.prepare(sql).all(...params.map(bound))
  const database = {
    all,
    allHidden: all,
    each: all,
    first: (sql: string, ...params: SQLInputValue[]) => all(sql, ...params)[0],
    read: (_: string, otherwise: unknown) => otherwise,
    precede: (write: () => void) => write(),
  }
  const log = new Log(database as unknown as Database, () => 0, options)
  const kept = () =>
    all('SELECT seq, entries FROM log ORDER BY seq').flatMap(({ seq, entries }) =>
      (JSON.parse(unpack(entries as PackedText)) as object[]).map((entry, index) => ({
        seq: Number(seq) + index,
        entry: JSON.stringify(entry),
      })),
    )
  const reopened = () => new Log(database as unknown as Database, () => 0, options)
  const rows = () => all('SELECT seq, entries FROM log ORDER BY seq').map(({ entries }) => entries as PackedText)
  const forget = (last: number) => all('DELETE FROM log WHERE seq <= ?', last)
  return { log, kept, reopened, rows, forget }
}
const trimmed = (count: number): NewEntry => ({ ...scopeHead(), kind: 'context-trimmed', count, context_limit: 1 })
const countsIn = (rows: Record<string, unknown>[]) =>
  rows.map(({ seq, entry }) => [seq, (JSON.parse(String(entry)) as { count: number }).count])

const note = (fields: object, trace_id: string) =>
  ({ ...scopeHead(), trace_id, kind: 'reply-sent', turn_id: null, reflex_id: null, content: '', ...fields }) as NewEntry

describe('texts that quote a redacted value', () => {
  const mask = keyedMask('a key for this test')
  const hash = mask('swordfish')
  const trace_id = 'a'.repeat(32)

  test('show its hash, in whatever encoding, in the entries of the same trace', () => {
    const { log, kept } = opened({ mask })
    log.masks.mayQuote(trace_id, [{ user: 'ann', login: { password: 'swordfish' } }])
    const url = `https://a.example/?p=swordfish&b=${btoa('swordfish')}`
    const nested = JSON.stringify({ a: 'swordfish' }, null, 2)
    log.append([note({ content: url, error: 'no: swordfish', result: [{ text: nested }] }, trace_id)])
    log.append([note({ content: 'swordfish' }, 'b'.repeat(32))])
    log.write()
    const [own, other] = kept().map(({ entry }) => JSON.parse(entry) as Record<string, unknown>)
    expect(own).toMatchObject({
      content: `https://a.example/?p=${hash}&b=${hash}`,
      error: `no: ${hash}`,
      result: [{ text: nested.replace('swordfish', hash) }],
    })
    expect(other).toMatchObject({ content: 'swordfish' })
  })

  test('keep what identifies the entry, whatever the value is', () => {
    const { log, kept } = opened({ mask })
    log.masks.mayQuote(trace_id, [{ token: 'reply-sent', secret: trace_id, cookie: 'event-1', password: 'blue' }])
    log.append([note({ content: 'blue event-1', event_ids: ['event-1'] }, trace_id)])
    log.write()
    expect(JSON.parse(kept()[0]!.entry)).toMatchObject({
      kind: 'reply-sent',
      trace_id,
      event_ids: ['event-1'],
      content: `${mask('blue')} ${mask('event-1')}`,
    })
  })

  test('of an output are masked too, and a value of three characters is not', () => {
    const { log, kept } = opened({ mask })
    expect(log.clean({ token: 'from-a-tool', pin: 1, password: 'abc' }, trace_id)).toEqual({
      token: mask('from-a-tool'),
      pin: 1,
      password: mask('abc'),
    })
    log.append([note({ content: 'from-a-tool abc' }, trace_id)])
    log.write()
    expect(JSON.parse(kept()[0]!.entry)).toMatchObject({ content: `${mask('from-a-tool')} abc` })
  })
})

describe('the log', () => {
  test('keeps the entries of a unit at its end, in order', () => {
    const { log, kept } = opened()
    log.append([trimmed(1)])
    log.append([trimmed(2)])
    expect(kept()).toEqual([])
    log.append([trimmed(3)])
    log.write()
    expect(countsIn(kept())).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ])
  })

  test('can be read in the middle of a unit', () => {
    const { log } = opened()
    log.append([trimmed(1), trimmed(2)])
    expect(log.entry(2)).toMatchObject({ seq: 2, count: 2 })
    log.append([trimmed(3)])
    expect(log.read(1, 10).map(({ seq }) => seq)).toEqual([2, 3])
    expect(log.oldest()).toBe(0)
  })

  test.each(['x', 'é', '漢', '😀'])('keeps size and hash of a field of %s that is too large, and the rest of its entry', (character) => {
    const { log, kept } = opened()
    const seen: string[] = []
    log.listen((entries) => seen.push(...entries.map(({ text }) => text)))
    const content = character.repeat(1_200_000 / Buffer.byteLength(character))
    log.append([
      { ...scopeHead(), kind: 'effect-started', effect_id: 'e', tool: 't', input: { content }, idempotence_key: null, cause: { by: 'x' } },
    ])
    log.append([{ ...scopeHead(), kind: 'reply-sent', turn_id: 'turn', reflex_id: null, content }])
    log.write()
    log.announce()
    const entries = kept().map(({ entry }) => JSON.parse(entry) as Record<string, unknown>)
    const sha256: unknown = expect.stringMatching(/^[0-9a-f]{64}$/)
    expect(entries).toMatchObject([
      { kind: 'effect-started', tool: 't', input: { not_logged: { bytes: 1_200_000 + '{"content":""}'.length, sha256 } } },
      { kind: 'reply-sent', turn_id: 'turn', content: expect.stringMatching(/^\[not logged: 1200002 bytes, sha256 [0-9a-f]{64}\]$/) },
    ])
    expect(seen).toEqual(kept().map(({ entry }) => entry))
  })

  test('takes what the longest chain leaves about the largest batch', () => {
    const { log, kept } = opened()
    const count = limits.events_per_request * limits.chain_length * 2
    log.append(Array.from({ length: count }, (_, index) => trimmed(index)))
    log.write()
    expect(log.last).toBe(count)
    expect(countsIn(kept()).every(([seq, index]) => Number(seq) === Number(index) + 1)).toBe(true)
  })
})

/** A context as the reflexes see it, of the last ten of these events. */
const contextOf = (events: readonly object[]) => {
  const [event, recent_events] = [events.at(-1)!, events.slice(-10)]
  const texts = recent_events.map((one) => JSON.stringify(one))
  const context = { agent_id: 'a', recent_events, event, scratch: { note: 'x'.repeat(40) } }
  return { context, json: ContextJson.of(context, { event: JSON.stringify(event), recent_events: texts }) }
}
const passed = (context: unknown, trace_id = 'c'.repeat(32)) =>
  ({ ...scopeHead(), trace_id, kind: 'reflex-passed', reason: 'null', error: null, reflex_id: 'r', context }) as unknown as NewEntry

describe('the contexts of a row', () => {
  const events = fc.array(fc.record({ id: fc.uuid(), content: fc.string({ unit: 'binary', maxLength: 60 }) }), {
    minLength: 1,
    maxLength: 30,
  })
  const secret = 'a secret of the deployment'
  const hider = { finds: (text: string) => text.includes(secret), text: (text: string) => text.replaceAll(secret, '[secret]') }

  test('are read as they were appended, whatever the units, after a restart and after a deletion', () => {
    const steps = fc.array(fc.constantFrom('unit', 'restart', 'delete', 'secret', 'redacted', 'other', 'none', 'none'), { maxLength: 30 })
    assertProperty(
      'scope/log',
      fc.property(events, steps, (all, between) => {
        const { log: first, reopened, rows, forget } = opened({ hider: { ...hider, value: <T>(value: T) => value } })
        let log = first
        const expected: { seq: number; text: string }[] = []
        const listen = () => log.listen((entries) => expected.push(...entries.map(({ seq, text }) => ({ seq, text }))))
        listen()
        const seen: object[] = []
        for (const [index, event] of all.entries()) {
          const step = between[index]
          seen.push(step === 'secret' ? { ...event, content: secret } : step === 'redacted' ? { ...event, password: 'swordfish' } : event)
          const { context, json } = contextOf(seen)
          log.append([passed(log.cleanContext(context, json)), ...(step === 'other' ? [trimmed(1)] : [])])
          log.announce()
          if (step === 'unit' || step === 'restart' || step === 'delete') log.write()
          if (step === 'restart') {
            log = reopened()
            listen()
          }
          if (step === 'delete') {
            const gone = linesOf(rows()[0]!).lines.length
            forget(expected.splice(0, gone).at(-1)!.seq)
          }
        }
        expect(log.read(0, 1000)).toEqual(expected)
        for (const { seq, text } of expected) expect(log.entry(seq)).toEqual(JSON.parse(text))
        expect(log.ofTrace('c'.repeat(32), 0).entries).toHaveLength(expected.filter(({ text }) => text.includes('reflex-passed')).length)
      }),
    )
  })

  test('are read again after a rollback gave their place to others', () => {
    const { log, reopened, forget } = opened()
    const countAt = () => (log.entry(1) as { count?: number } | null)?.count
    log.append([trimmed(1)])
    expect(countAt()).toBe(1)
    forget(1)
    const other = reopened()
    other.append([trimmed(2)])
    other.write()
    expect(countAt()).toBe(2)
  })

  test('hold each event once', () => {
    const { log, rows } = opened()
    const seen: object[] = []
    for (let index = 0; index < 100; index += 1) {
      seen.push({ id: crypto.randomUUID(), content: `event ${index}` })
      const { context, json } = contextOf(seen)
      log.append([passed(log.cleanContext(context, json))])
    }
    log.write()
    expect(rows()).toHaveLength(1)
    for (let index = 0; index < 100; index += 1) expect(unpack(rows()[0]!).split(`"event ${index}"`)).toHaveLength(2)
  })
})
