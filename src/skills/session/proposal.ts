import type { JsonFields } from '../../base/json.ts'
import type { ProposedBy, Proposer } from './ports.ts'

/** `skill_id` may name a version: `deploy.container@1.3.0`. */
export type SkillProposal = { skill_id: string; inputs: JsonFields; why: string }

export type ProposalRequest = {
  from: ProposedBy
  /** Absent where no key stands behind it. */
  proposer?: Proposer
  /** Every role of whoever the turn is for, those that another one implies included. */
  roles: readonly string[]
  /** What was said: keywords are looked for in it, and pinned parsers read it. Never what a model said. */
  text: string
  goal_labels?: readonly string[]
  entity_types?: readonly string[]
  /** Decides, and that is all: nothing runs or waits, and no model is asked. */
  dry_run?: boolean
  /** Stops the run at hand, which is then compensated. */
  signal?: AbortSignal | undefined
}
