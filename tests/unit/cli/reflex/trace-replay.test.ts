import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { bodyOf } from '../../../../cli/reflex/trace/replay.ts'
import { leftOf, together } from '../../../../cli/reflex/trace/replay-range.ts'
import { rangeLines } from '../../../../cli/reflex/trace/replay-report.ts'
import { plainPaint } from '../../../../cli/lib/paint.ts'
import type { RangeReport, ReplayExample } from '../../../../src/features/replay/contract/replay.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'replay-'))
function file(name: string, text: string): string {
  const at = path.join(folder, name)
  writeFileSync(at, text)
  return at
}

test('a replay without changes is pinned', () => {
  expect(bodyOf({})).toEqual({ mode: 'pinned' })
  expect(bodyOf({ mode: 'pinned' })).toEqual({ mode: 'pinned' })
})

test('each flag names a change', () => {
  const code = file('greet.js', 'function reflex() {}')
  const { mode, changes } = bodyOf({
    set: ['gate.tau=0.9', 'overlap=interrupt', 'retry.max_attempts=2', 'retry.base_s=1', 'name=a=b'],
    reflexes: '[{"id": "greet"}]',
    reflexCode: [code, `other=${code}`],
    manifest: [file('skill.json', '{"id": "a.skill"}'), file('other.json', '{"id": "b.skill"}')],
    instructions: file('instructions.md', 'Be brief.'),
    model: 'openai/gpt',
  })
  expect(mode).toBe('what_if')
  expect(changes).toEqual({
    settings: { tau: 0.9, overlap: 'interrupt', retry: { max_attempts: 2, base_s: 1 }, name: 'a=b' },
    reflexes: [{ id: 'greet' }],
    reflex_code: { greet: 'function reflex() {}', other: 'function reflex() {}' },
    manifest: [{ id: 'a.skill' }, { id: 'b.skill' }],
    instructions: 'Be brief.',
    model: 'openai/gpt',
  })
  expect(bodyOf({ reflexes: `@${file('chain.json', '[]')}` })).toMatchObject({ changes: { reflexes: [] } })
})

test('a budget is part of a what-if, and of nothing else', () => {
  expect(bodyOf({ model: 'a', budgetUsd: 0.5, budgetCalls: 3 })).toMatchObject({ budget: { usd: 0.5, calls: 3 } })
  expect(bodyOf({ model: 'a' })).not.toHaveProperty('budget')
  expect(() => bodyOf({ budgetCalls: 3 })).toThrow('a budget needs a change')
})

test('wrong changes are wrong usage', () => {
  expect(() => bodyOf({ mode: 'pinned', model: 'a' })).toThrow('takes no changes')
  expect(() => bodyOf({ mode: 'what-if' })).toThrow('needs a change')
  expect(() => bodyOf({ set: ['tau'] })).toThrow('not a setting with a value')
  expect(() => bodyOf({ set: ['overlap=drop', 'overlap.debounce.quiet_ms=5'] })).toThrow('another --set replaces')
  expect(() => bodyOf({ reflexes: '{}' })).toThrow('is a JSON list')
  expect(() => bodyOf({ reflexes: '[' })).toThrow('not JSON')
})

const side = (model_calls: number) => ({
  usage: { input_tokens: 10, output_tokens: 1, cost_usd: 0.1, model_calls },
  effects: 1,
  duration_ms: 5,
  unanswered: 1,
})
const example = (why: string, alike: number): ReplayExample => ({
  span_id: 's',
  kind: 'turn',
  trace_id: 't',
  at: 'now',
  event_id: null,
  path: '',
  recorded: 'a long beginning that both have: one',
  replayed: 'a long beginning that both have: two',
  why,
  alike,
})
const part = (more: Partial<RangeReport> = {}): RangeReport => ({
  scope: 'a',
  mode: 'what_if',
  since: '1',
  until: '2',
  equivalent: false,
  entries: 10,
  events: 2,
  same: 3,
  changed: 1,
  unknown: 2,
  decisions: { turn: { same: 3, changed: 1, unknown: 2 } },
  reasons: [
    { reason: 'one', count: 2 },
    { reason: 'two', count: 1 },
  ],
  effects: { appear: 1, vanish: 0 },
  examples: [example('first', 1), example('second', 2)],
  recorded: side(2),
  replayed: side(1),
  spent: { calls: 1, usd: 0.25 },
  next_cursor: '7',
  ...more,
})

test('a replay that differs nowhere, with decisions that are unknown, is neither the same nor changed', () => {
  const unknown = part({ changed: 0, equivalent: null })
  expect(together(unknown, part({ changed: 0, unknown: 0, equivalent: true })).equivalent).toBeNull()
  expect(together(unknown, part()).equivalent).toBe(false)
  expect(rangeLines(unknown, plainPaint)[0]).toMatch(/^\? .*2 unknown: not known whether all are the same$/)
})

test('the parts of a range are one report', () => {
  const decisions = { turn: { same: 1, changed: 0, unknown: 0 }, gate: { same: 0, changed: 1, unknown: 0 } }
  const reasons = [{ reason: 'two', count: 4 }]
  const examples = [example('third', 1), example('second', 3)]
  const whole = together(part(), part({ decisions, reasons, examples, equivalent: true, next_cursor: null }))
  expect(whole).toMatchObject({ entries: 20, events: 4, same: 6, changed: 2, unknown: 4, equivalent: false, next_cursor: null })
  expect(whole.decisions).toEqual({ turn: { same: 4, changed: 1, unknown: 2 }, gate: { same: 0, changed: 1, unknown: 0 } })
  expect(whole.reasons).toEqual([
    { reason: 'two', count: 5 },
    { reason: 'one', count: 2 },
  ])
  expect(whole.examples.map(({ why, alike }) => [why, alike])).toEqual([
    ['first', 1],
    ['third', 1],
    ['second', 5],
  ])
  expect(whole.replayed).toMatchObject({ usage: { model_calls: 2, input_tokens: 20 }, effects: 2, unanswered: 2 })
  expect(whole.spent).toEqual({ calls: 2, usd: 0.5 })
  const lines = rangeLines(whole, plainPaint)
  expect(lines).toContain('? 5 × two')
  expect(lines.join('\n')).toMatch(/second \(5 alike\).*\nturn\s+… both have: one\s+… both have: two/)
})

test('the requests for a range share its budget', () => {
  expect(leftOf({ calls: 3, usd: 1 }, undefined)).toEqual({ calls: 3, usd: 1 })
  expect(leftOf({ calls: 3, usd: 1 }, { calls: 1, usd: 0.25 })).toEqual({ calls: 2, usd: 0.75 })
  expect(leftOf({ calls: 3 }, { calls: 3, usd: null })).toBeUndefined()
  expect(leftOf({ usd: 1 }, { calls: 9, usd: 1.1 })).toBeUndefined()
  expect(leftOf(undefined, undefined)).toBeUndefined()
})
