import fc from 'fast-check'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { openRecording } from '../../../src/replay/recording.ts'

const text = readFileSync('tests/golden/turn-model-tools.trace.json', 'utf8').trim()
const file = JSON.parse(text) as Record<string, unknown>

describe('an exported file', () => {
  test('opens as it is', async () => {
    expect(await openRecording(text)).toMatchObject({ ok: true, recording: { trace_id: file['trace_id'] } })
  })

  test('with any bit changed is rejected, or has the same content', async () => {
    const bytes = new TextEncoder().encode(text)
    const place = fc.nat({ max: bytes.length - 1 })
    await fc.assert(
      fc.asyncProperty(place, fc.nat({ max: 7 }), async (at, bit) => {
        const changed = bytes.with(at, (bytes[at] ?? 0) ^ (1 << bit))
        const opened = await openRecording(new TextDecoder().decode(changed))
        if (opened.ok) expect(opened.recording).toEqual(file)
        else expect(opened.detail).toMatch(/^The (?:file|content|code) /)
      }),
      { numRuns: 1000 },
    )
  })

  test('cut off anywhere is rejected', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: text.length - 1 }), async (length) => {
        expect(await openRecording(text.slice(0, length))).toMatchObject({ ok: false, reason: 'not_json' })
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
    expect(await openRecording(broken)).toMatchObject({ ok: false, reason })
  })
})
