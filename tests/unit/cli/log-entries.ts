import type { Cause, EntryBody, LogEntry, SkillEntryKind } from '../../../src/contract/log-entry.ts'

let seq = 0
const head = {
  at: '2026-11-21T07:41:52.781Z',
  trace_id: '0'.repeat(32),
  span_id: '0'.repeat(16),
  parent_id: null,
  event_ids: ['line-1'],
  duration_ms: 5,
}
const usage = { input_tokens: 200, output_tokens: 50, cost_usd: 0, model_calls: 1 }

/** A log entry with a `seq` after the entry before. */
export const entry = (body: EntryBody): LogEntry => ({ seq: (seq += 1), ...head, ...body })

export const accepted = (): LogEntry => entry({ kind: 'event-accepted', event_type: 'log.line', source: 'demo', via: 'queue' })
export const ignored = (): LogEntry =>
  entry({ kind: 'event-ended', status: 'ignored', attempts: 0, outcome: { by: 'filter' }, error: null })
export const considered = (): LogEntry =>
  entry({ kind: 'event-ended', status: 'completed', attempts: 1, outcome: { by: 'turn', turn_id: 'turn', log_seq: 9 }, error: null })
export const turnStarted = (count: number): LogEntry =>
  entry({
    kind: 'turn-started',
    turn_id: 'turn',
    agent: 'ssh-guard',
    attempts: 1,
    considered: [[1, 1]],
    saw: { seqs: [[1, count]], count, scratch: {} },
  })
export const turnEnded = (result: unknown, model_calls = 1): LogEntry =>
  turnEnding(result === null ? 'none' : 'result', result, null, model_calls)
export const turnFailed = (error: string): LogEntry => turnEnding('failed', null, error)
export const modelCalled = (cost_usd: number | null = 0): LogEntry =>
  entry({
    kind: 'model-called',
    turn_id: 'turn',
    model: 'offline',
    status: 'ok',
    prompt_hash: '',
    content: [],
    finish_reason: 'stop',
    error: null,
    usage: { ...usage, cost_usd },
  })
const run = {
  reflex_id: 'ssh-brute-force',
  version: 1,
  hash: '0'.repeat(64),
  context_hash: null,
  context: null,
  fuel: 60_000,
}
export const reflexFired = (address: string, duration_us = 0, state: 'active' | 'shadow' = 'active'): LogEntry =>
  entry({ kind: 'reflex-fired', action: { action_type: 'call_tool', tool: 'block', args: { address } }, ...run, state, duration_us })
export const reflexPassed = (reason: 'null' | 'error' = 'null', duration_us = 0): LogEntry =>
  entry({ kind: 'reflex-passed', reason, error: null, ...run, state: 'active', duration_us })
export const endedByReflex = (): LogEntry =>
  entry({
    kind: 'event-ended',
    status: 'completed',
    attempts: 0,
    outcome: { by: 'reflex', reflex_id: 'ssh-brute-force', version: 1, log_seq: 9 },
    error: null,
  })
export const blockStarted = (address: string, reason: string, cause: Cause = { turn_id: 'turn' }): LogEntry =>
  entry({
    kind: 'effect-started',
    effect_id: address,
    tool: 'block',
    input: { address, reason },
    idempotence_key: null,
    cause,
  })
export const blockEnded = (address: string, status: 'ok' | 'failed' = 'ok'): LogEntry =>
  entry({
    kind: 'effect-ended',
    effect_id: address,
    tool: 'block',
    status,
    output: { blocked: status === 'ok', address },
    error: null,
    idempotence_key: null,
  })

const turnEnding = (status: 'result' | 'none' | 'failed', result: unknown, error: string | null, model_calls = 1): LogEntry =>
  entry({
    kind: 'turn-ended',
    turn_id: 'turn',
    started_seq: 1,
    status,
    result,
    error,
    cleared: 0,
    usage: { ...usage, model_calls },
    scratch: {},
    acts: [],
  })

export const skillEntry = (kind: SkillEntryKind, skill_id: string, fields: Record<string, unknown>): LogEntry =>
  entry({ kind, skill_id, version: '1.0.0', ...fields })
