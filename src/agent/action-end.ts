import { messageOf } from '../base/error-text.ts'
import { isPlatformFault } from '../base/faults.ts'
import type { EffectEnd } from '../contract/log-entry.ts'

export type ActionEnding = { status: EffectEnd; error: string | null }
export const ACTED: ActionEnding = { status: 'ok', error: null }
export const REUSED: ActionEnding = { status: 'reused', error: null }

/** The end of a sequence none of whose branches is for such outputs: nothing failed. */
export const NO_BRANCH: ActionEnding = { status: 'failed', error: 'no branch has conditions that hold for these outputs' }

/** The end of a sequence that cannot choose its branch: nothing failed. */
export const UNKNOWN_OUTPUT: ActionEnding = {
  status: 'failed',
  error: 'an output that a branch asks about was not kept: let its tool return less',
}

/** The end of a sequence with an act that failed. */
export const endOfAct = <Ending extends ActionEnding>(ending: Ending, place: number, of: number): Ending =>
  ending.error === null ? ending : { ...ending, error: `act ${place + 1} of ${of}: ${ending.error}` }

/** The last effect of an action, as the journal has it. */
type LastEffect = { status: string; idempotence_key: string | null }

/**
 * The end of an action whose attempt failed; null if it is tried again. An effect that may have
 * happened is repeated only under a key.
 */
export function endOfFailure(error: unknown, tried: { last: LastEffect | undefined; attempts: number; most: number }): ActionEnding | null {
  const { last, attempts, most } = tried
  const unknown = last?.status === 'unknown' || last?.status === 'started'
  const again = last === undefined ? isPlatformFault(error) : unknown && last.idempotence_key !== null
  return again && attempts < most ? null : { status: unknown ? 'unknown' : 'failed', error: messageOf(error) }
}

type Proposed = { skill_id: string; status: string; reason: string | null; idempotent: boolean }

/** The end of an action that proposed a skill. A run that needs an approval waits for a person. */
export function endOfProposal({ skill_id, status, reason, idempotent }: Proposed): ActionEnding {
  if (status === 'needs_approval') return ACTED
  if (status === 'ok') return idempotent ? REUSED : ACTED
  const error = `skill ${skill_id}: ${status}${reason === null ? '' : `, ${reason}`}`
  return { status: status === 'unknown' ? 'unknown' : 'failed', error }
}
