import type { Outcome } from '../../contract/event-record.ts'
import type { Action } from '../../contract/action.ts'
import type { NewEntry } from '../../contract/log-entry.ts'
import type { ReflexVersion } from '../../contract/reflex.ts'
import type { Permitted } from './permit.ts'

/** A reflex fired: what it wants, and how that is done. `reused`: under this key it was carried out before, and is not again. */
export type Fire = { version: ReflexVersion; action: Action; permitted: Permitted; reused: boolean }
/** What became of an event in the chain. `consumed`: it has left the context. `entries` stand in the log behind its acceptance; `fired` is the place among them of the one that acts. */
export type Decided = {
  entries: NewEntry[]
  fire: Fire | null
  fired: number
  consumed: boolean
  trials: { version: ReflexVersion; action: Action }[]
}
/** How a fire leaves its event: for a turn after all, held until the effect lane is done, or ended. */
export type Left = { status: 'pending' | 'processing'; outcome: null } | { status: 'completed'; outcome: Outcome }

export function leftBy({ version, action, permitted, reused }: Fire, log_seq: number): Left {
  const outcome: Outcome = { by: 'reflex', reflex_id: version.id, version: version.version, log_seq, ...(reused && { reused }) }
  if (reused) return { status: 'completed', outcome }
  if (action.action_type === 'escalate') return { status: 'pending', outcome: null }
  if (permitted.lane) return { status: 'processing', outcome: null }
  return { status: 'completed', outcome }
}

/** Whether the event leaves the context with the decision itself, and not only once the effect lane is done. */
export const consumesAtOnce = ({ action, permitted, reused }: Fire): boolean =>
  action.consume === true && action.action_type !== 'escalate' && (reused || !permitted.lane)
