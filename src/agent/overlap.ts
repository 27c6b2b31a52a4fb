import type { Settings } from '../contract/settings/settings.ts'
import type { Arrival, InFlight } from '../contract/event-record.ts'
import type { ReactionDecision } from '../reflexes/decide.ts'

/** Maximum number of interruptions in a row. */
export const MOST_INTERRUPTS = 10

/** The situation that events meet which arrive together. */
export type OverlapSituation = { overlap: Settings['overlap']; has_trigger: boolean; in_flight: InFlight | null }

/**
 * The overlap policy: what an event does that waits for a turn. Null if it waits for none. An event
 * that a reflex escalated waits for the turn in flight, and ignores the debounce.
 */
export function arrivalOf({ perceived, acted }: Pick<ReactionDecision, 'perceived' | 'acted'>, meeting: OverlapSituation): Arrival | null {
  const { overlap, has_trigger, in_flight } = meeting
  const urgent = acted !== null && !acted.reused && acted.action.action_type === 'escalate'
  if (perceived !== 'joined' || (acted && !urgent)) return null
  if (!has_trigger) return 'no_trigger'
  if (!in_flight) return typeof overlap === 'string' || urgent ? 'starts' : 'debounced'
  if (urgent) return 'waits'
  if (overlap === 'drop') return 'dropped'
  return overlap === 'interrupt' && in_flight.interrupts < MOST_INTERRUPTS ? 'interrupts' : 'waits'
}

/** Why no turn will consider an event; null if one may. */
export function noTurn(arrival: Arrival | null, agent: string): string | null {
  if (arrival === 'no_trigger') return `agent ${agent} has no trigger`
  return arrival === 'dropped' ? 'a turn was in flight, and the overlap policy is drop' : null
}
