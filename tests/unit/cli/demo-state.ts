import { lineEvent, type LineEvent } from '../../../cli/demo/read-log.ts'
import { summarise, type DemoOutcome, type DemoSummary } from '../../../cli/demo/summary.ts'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import type { ScopeState } from '../../../src/contract/scope.ts'
import { defaultSettings } from '../../../src/contract/settings/settings.ts'
import {
  accepted,
  blockEnded,
  blockStarted,
  considered,
  endedByReflex,
  ignored,
  modelCalled,
  reflexFired,
  reflexPassed,
  skillEntry,
  turnEnded,
  turnStarted,
} from './log-entries.ts'

export const REASON = '6 failed logins from 2025-12-10T07:13:43.000Z to 2025-12-10T07:13:56.000Z as "root"'
export const QUICK_REASON = '3 failed logins from 2025-12-10T07:10:02.000Z to 2025-12-10T07:10:09.000Z as "oracle"'
type Given = { logs?: Record<string, LogEntry[]>; scopes?: ScopeState[]; attempts?: [string, number][] } & Partial<
  Pick<DemoOutcome, 'approvals' | 'dead_letters'>
>

/** The summary of logs by scope, of five lines. */
export const summaryOf = ({ logs = { 'ssh/web-1': busyLog() }, scopes = [scopeState], attempts = [], ...rest }: Given = {}): DemoSummary =>
  summarise({
    log: {
      name: 'examples/ssh-auth.log',
      events: Array.from({ length: 5 }, (_, index) => lineOf(index)),
      scopes: Object.keys(logs),
      attempts: new Map(attempts),
      left_out: {},
    },
    logs: new Map(Object.entries(logs)),
    speed: null,
    scopes,
    dead_letters: [],
    approvals: [],
    first_at: Date.parse('2026-11-21T07:41:51.781Z'),
    times: { start: 5000.4, send: 900, dead_letter: 20, all: 6100 },
    ...rest,
  })

const lineOf = (index: number): LineEvent => {
  const event = lineEvent('Nov 20 06:55:46 web-1 sshd[1]: x', index + 1, Date.parse('2026-11-21T08:00:00Z'))
  if (typeof event === 'string') throw new Error(event)
  return event
}

/**
 * Five lines: filtered out, blocked by a reflex, two considered by a turn that blocked another
 * address, and one waiting.
 */
export const busyLog = (): LogEntry[] => [
  accepted(),
  accepted(),
  accepted(),
  accepted(),
  accepted(),
  ignored(),
  reflexPassed('null', 0),
  reflexPassed('null', 0),
  reflexFired('192.0.2.9', 240),
  blockStarted('192.0.2.9', QUICK_REASON, { by: 'reflex:ssh-brute-force@1' }),
  blockEnded('192.0.2.9'),
  endedByReflex(),
  turnStarted(2),
  modelCalled(),
  blockStarted('203.0.113.7', REASON),
  blockEnded('203.0.113.7'),
  skillEntry('skill-decided', 'incident.open', { decision: { verdict: 'allow' } }),
  skillEntry('skill-applied', 'incident.open', { status: 'ok' }),
  skillEntry('skill-decided', 'incident.open', { decision: { verdict: 'refused' } }),
  skillEntry('skill-decided', 'network.block', { decision: { verdict: 'needs_approval' } }),
  skillEntry('approval-requested', 'network.block', { approval_id: 'a-1' }),
  considered(),
  considered(),
  turnEnded({ summary: 'blocked it', blocked: ['203.0.113.7'], considered: ['203.0.113.7'] }),
]

export const counters: ScopeState['counters'] = {
  accepted: 5,
  duplicates: 0,
  completed: 4,
  ignored: 1,
  dead_lettered: 0,
  cancelled: 0,
  retried: 0,
  turns: 2,
  turns_failed: 0,
  reflex_actions: 0,
  effects: 1,
  effects_failed: 0,
  model_calls: 1,
  input_tokens: 200,
  output_tokens: 50,
  cost_usd: 0,
  unpriced_calls: 0,
}
export const scopeState: ScopeState = {
  scope: 'ssh/web-1',
  agent: 'ssh-guard',
  settings: defaultSettings,
  fired: { share: 0, decided: 0, model_calls: 1 },
  inbox: { pending: 0, processing: 0, delayed: 0 },
  context: { events: 0 },
  counters,
  turn: null,
  llm_tokens_remaining: null,
  waiting_for_model: null,
  budget_problem: null,
  sockets: 0,
  outbox: { waiting: 0, last_error: null },
  archive: null,
  spans: null,
  parked: [],
  last_seq: 9,
}
