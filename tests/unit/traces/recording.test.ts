import * as fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { hashJson } from '../../../src/base/json.ts'
import { bundle, openRecordings, type Recording } from '../../../src/features/replay/recording.ts'
import { assertProperty } from '../../support/property.ts'

const text = readFileSync('tests/golden/turn-model-tools.trace.json', 'utf8').trim()
const file = JSON.parse(text) as Record<string, unknown>

describe('an exported file', () => {
  test('opens as it is', async () => {
    expect(await openRecordings(text)).toMatchObject({ ok: true, recordings: [{ trace_id: file['trace_id'] }] })
  })

  test('with any bit changed is rejected, or has the same content', async () => {
    const bytes = new TextEncoder().encode(text)
    const place = fc.nat({ max: bytes.length - 1 })
    await assertProperty(
      'traces/recording: a flipped bit',
      fc.asyncProperty(place, fc.nat({ max: 7 }), async (at, bit) => {
        const changed = bytes.with(at, (bytes[at] ?? 0) ^ (1 << bit))
        const opened = await openRecordings(new TextDecoder().decode(changed))
        const is_same = opened.ok && JSON.stringify(opened.recordings) === `[${text}]`
        const is_rejected = !opened.ok && /^The (?:file|content|code) /.test(opened.detail)
        expect(is_same || is_rejected).toBe(true)
      }),
      { numRuns: 1000 },
    )
  })

  test('of several scopes opens as one recording for each, unless one of them was changed', async () => {
    const one = file as unknown as Recording
    const both = await bundle(one.trace_id, [one, one])
    expect(both).toMatchObject({ scopes: [one.scope, one.scope], trace_id: one.trace_id })
    expect(await openRecordings(JSON.stringify(both))).toEqual({ ok: true, recordings: [one, one] })
    const inner = JSON.parse(JSON.stringify(both)) as { recordings: Recording[] }
    inner.recordings.pop()
    expect(await openRecordings(JSON.stringify(inner))).toMatchObject({ ok: false, reason: 'changed' })
    const { sha256: _sha256, ...content } = { ...inner, recordings: [{ ...one, complete: !one.complete }] } as Record<string, unknown>
    const resealed = { ...content, sha256: await hashJson(content) }
    expect(await openRecordings(JSON.stringify(resealed))).toMatchObject({ ok: false, reason: 'changed' })
    expect(await openRecordings(JSON.stringify({ ...both, sha256: undefined }))).toMatchObject({ ok: false, reason: 'incomplete' })
  })

  test.each([
    ['a turn that saw more places than a scope has', { saw: { seqs: [[1, 1e9]] } }],
    ['a turn that considers more places than a scope has', { considered: [[1, 1e9]] }],
    ['a turn that saw one event many times', { saw: { seqs: Array.from({ length: 1000 }, () => [1, 1]) } }],
    ['a turn that saw a range that ends before it begins', { saw: { seqs: [[2, 1]] } }],
    ['an entry without its events', { event_ids: undefined }],
  ])('with %s is rejected, though its sum fits', async (_flaw, change) => {
    const entries = (file as unknown as Recording).entries.map((entry) => (entry.kind === 'turn-started' ? { ...entry, ...change } : entry))
    const { sha256: _sha256, ...content }: Record<string, unknown> = { ...file, entries }
    const resealed = JSON.stringify({ ...content, sha256: await hashJson(content) })
    expect(await openRecordings(resealed)).toMatchObject({ ok: false, reason: 'incomplete' })
  })

  test('cut off anywhere is rejected', async () => {
    await assertProperty(
      'traces/recording: a cut',
      fc.asyncProperty(fc.nat({ max: text.length - 1 }), async (length) => {
        expect(await openRecordings(text.slice(0, length))).toMatchObject({ ok: false, reason: 'not_json' })
      }),
    )
  })

  test.each([
    ['no file', '', 'not_json'],
    ['an array', '[]', 'unknown_schema'],
    ['null', 'null', 'not_json'],
    ['no schema', JSON.stringify({ ...file, schema: undefined }), 'unknown_schema'],
    ['a schema of the future', JSON.stringify({ ...file, schema: 99 }), 'unknown_schema'],
    ['a schema that is a text', JSON.stringify({ ...file, schema: String(file['schema']) }), 'unknown_schema'],
    ['no entries', JSON.stringify({ ...file, entries: undefined }), 'incomplete'],
    ['entries that are not a list', JSON.stringify({ ...file, entries: {} }), 'incomplete'],
    ['an event without its place', JSON.stringify({ ...file, events: [{ event: { id: 'x', type: 'y' } }] }), 'incomplete'],
    ['no sum', JSON.stringify({ ...file, sha256: undefined }), 'incomplete'],
    ['another sum', JSON.stringify({ ...file, sha256: 'a'.repeat(64) }), 'changed'],
    ['a field more', JSON.stringify({ ...file, more: 1 }), 'changed'],
    ['an entry less', JSON.stringify({ ...file, entries: (file['entries'] as unknown[]).slice(1) }), 'changed'],
  ])('with %s is rejected as a whole', async (_flaw, broken, reason) => {
    expect(await openRecordings(broken)).toMatchObject({ ok: false, reason })
  })
})
