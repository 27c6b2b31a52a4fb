import { iso } from '../../base/time.ts'
import type { Waiting } from '../../contract/event-record.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Budget } from '../turns/budget.ts'
import type { OpenEvent } from './view.ts'
import { UNTIL_SETTLED } from './turn-rows.ts'
import type { ModelOutage } from '../turns/model-outage.ts'
import type { Turns } from '../turns/turn-lane.ts'

/** The scope's activity; times in ms. */
export type Situation = {
  now: number
  pulled: boolean
  turn_since: number | null
  /** Earliest start of a debounced turn. */
  debounced_until: number | null
  max_attempts: number
  /** Details of an outage and of a spent budget, or null. */
  outage: string | null
  budget: { until: number | null; detail: string } | null
}

export type SituationParts = { turns: Turns; budget: Budget; outage: ModelOutage; settings: () => Settings; now: () => number }

export function situationOf({ turns, budget, outage, settings, now }: SituationParts): Situation {
  const { consumer, retry } = settings()
  const allowance = budget.allow()
  const at = now()
  return {
    now: at,
    pulled: consumer === 'pull',
    turn_since: turns.current?.since ?? null,
    debounced_until: turns.debouncedUntil(at),
    max_attempts: retry.max_attempts,
    outage: outage.told,
    budget: allowance.ok ? null : allowance,
  }
}

/** Explains why an event has no outcome yet. */
export function waitingOf(event: OpenEvent, situation: Situation): Waiting {
  return event.status === 'processing' ? inHand(event, situation) : (delayed(event, situation) ?? queued(situation))
}

function inHand({ token, lease_until, accepted_at }: OpenEvent, { turn_since }: Situation): Waiting {
  if (token.startsWith('turn:')) return told('turn', { since: turn_since }, 'a turn considers the event')
  if (token.startsWith('reflex:')) return told('reflex', { since: accepted_at }, "a reflex's action about the event has not ended")
  const until = lease_until === UNTIL_SETTLED ? null : lease_until
  return told('pull', { until }, 'a consumer has claimed the event, and has not acknowledged it')
}

/** The event is due at a later time. */
function delayed({ due_at, parked, parked_at, attempts, error }: OpenEvent, situation: Situation): Waiting | null {
  if (due_at <= situation.now) return null
  const { outage, budget, max_attempts } = situation
  if (parked === 'model') return told('model', { since: parked_at, until: due_at }, outage ?? 'the model is not available')
  if (parked === 'budget') {
    return told('budget', { since: parked_at, until: budget ? budget.until : due_at }, budget?.detail ?? 'the token budget is spent')
  }
  if (attempts === 0 || error === null) {
    return told('retry', { until: due_at }, 'the server died or lost a connection while a turn considered the event')
  }
  return told('retry', { until: due_at }, `attempt ${attempts} of ${max_attempts} failed: ${error}`)
}

function queued({ pulled, turn_since, debounced_until, now }: Situation): Waiting {
  if (pulled) return told('pull', {}, 'the setting consumer is pull: the event waits for a consumer to claim it')
  if (turn_since !== null) return told('turn', { since: turn_since }, 'a turn is in flight; the next one considers the event')
  if (debounced_until !== null && debounced_until > now) {
    return told('debounce', { until: debounced_until }, 'the overlap policy is debounce: the turn starts after a quiet time')
  }
  return told('start', {}, 'a turn is about to start')
}

function told(reason: Waiting['reason'], times: { since?: number | null; until?: number | null }, detail: string): Waiting {
  return { reason, since: isoOrNull(times.since), until: isoOrNull(times.until), detail }
}

const isoOrNull = (ms: number | null | undefined): string | null => (ms === null || ms === undefined ? null : iso(ms))
