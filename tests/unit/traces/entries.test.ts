import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { logPage } from '../../../cli/docs/log-page.ts'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { kinds, sentenceOf } from '../../../src/traces/entries/sentences.ts'
import { byName } from '../../../src/traces/entries/table.ts'

const say = String
const golden = readdirSync('tests/golden')
  .filter((file) => file.endsWith('.trace.json'))
  .flatMap((file) => JSON.parse(readFileSync(`tests/golden/${file}`, 'utf8')) as { entries?: LogEntry[] })
  .flatMap(({ entries = [] }) => entries)
const byKind = Map.groupBy(golden, ({ kind }) => kind)

describe('the table of entry kinds', () => {
  test('has a sentence for each kind', () => {
    expect(kinds).toEqual([...byName.keys()].toSorted())
  })

  test.each([...byKind.keys()])('tells an entry %s in words, not as its fields', (kind) => {
    for (const entry of byKind.get(kind) ?? []) expect(sentenceOf(entry, say)).not.toMatch(/^\{|undefined|\[object/)
  })

  test('tells a kind of a later version by its own fields', () => {
    const later = { kind: 'moon-landed', seq: 1, at: '2026-01-01T00:00:00.000Z', crew: 2 } as unknown as LogEntry
    expect(sentenceOf(later, say)).toBe('{"crew":2}')
  })

  test('names the step that ended', () => {
    const entry = { kind: 'skill-step-ended', index: 0, step: 'open-ticket', status: 'ok' } as unknown as LogEntry
    expect(sentenceOf(entry, say)).toBe('Step open-ticket ended: ok')
  })

  test('is what docs/log.md lists', () => {
    expect(readFileSync('docs/log.md', 'utf8'), 'run: npm run docs:reference').toBe(logPage())
  })
})
