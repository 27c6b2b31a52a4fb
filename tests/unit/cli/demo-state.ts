import { reduce, sent } from '../../../cli/demo/reduce.ts'
import { initialState, type DemoState } from '../../../cli/demo/state.ts'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import {
  accepted,
  blockEnded,
  blockStarted,
  buried,
  considered,
  endedByReflex,
  ignored,
  modelCalled,
  reflexFired,
  reflexPassed,
  retried,
  skillEntry,
  turnEnded,
  turnFailed,
  turnStarted,
} from './log-entries.ts'

export const REASON = '6 failed logins from 2025-12-10T07:13:43.000Z to 2025-12-10T07:13:56.000Z as "root"'
export const QUICK_REASON = '3 failed logins from 2025-12-10T07:10:02.000Z to 2025-12-10T07:10:09.000Z as "oracle"'
export const newState = (scopes: readonly string[] = ['ssh/web-1']): DemoState =>
  initialState({ total: 5, scopes, failing: 'demo/failing' })

export const after = (state: DemoState, scope: string, entries: readonly LogEntry[]): DemoState =>
  entries.reduce((current, entry) => reduce(current, scope, entry), state)

/**
 * Five lines: filtered out, blocked by a reflex, two considered by a turn that blocked another
 * address, and one waiting. And the failed event.
 */
export function busyState(): DemoState {
  const logged = after(sent(newState(), 5), 'ssh/web-1', [
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
  ])
  const error = 'Error: the condition could not be evaluated: division by zero\n>  1 | 1 / 0'
  return after(logged, 'demo/failing', [
    accepted(),
    turnStarted(1),
    turnFailed(error),
    retried(error),
    turnStarted(1),
    turnFailed(error),
    buried(error),
  ])
}
