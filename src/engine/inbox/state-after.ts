import type { Outcome } from '../../contract/event-record.ts'
import type { ReactionDecision, Fire } from '../../reflexes/decide.ts'
import type { ArrivedEvent } from './event-row.ts'

/** The state of an event after its decision: it waits, an action holds it, or it has ended. */
export function stateAfter(
  decision: ReactionDecision,
  { fired_seq, no_turn, asks }: { fired_seq: number; no_turn: string | null; asks: boolean },
): Pick<ArrivedEvent, 'status' | 'outcome'> {
  const { perceived, acted } = decision
  if (perceived === 'ignored') return { status: 'ignored', outcome: { by: 'filter' } }
  if (asks) return { status: 'processing', outcome: null }
  if (perceived !== 'joined' && perceived !== 'asked') return { status: 'pending', outcome: null }
  if (acted) return stateAfterFire(acted, fired_seq)
  return no_turn === null ? { status: 'pending', outcome: null } : { status: 'completed', outcome: { by: 'perceive', reason: no_turn } }
}

/** True if no reflex answered a request for a decision: a job asks the decision model. */
export const asksModel = ({ perceived, acted }: ReactionDecision): boolean =>
  perceived === 'asked' && (acted === null || acted.action.action_type === 'escalate')

function stateAfterFire({ version, action, permitted, reused }: Fire, log_seq: number): Pick<ArrivedEvent, 'status' | 'outcome'> {
  const outcome: Outcome = { by: 'reflex', reflex_id: version.id, version: version.version, log_seq, ...(reused && { reused }) }
  if (reused) return { status: 'completed', outcome }
  if (action.action_type === 'escalate') return { status: 'pending', outcome: null }
  return permitted.lane ? { status: 'processing', outcome: null } : { status: 'completed', outcome }
}
