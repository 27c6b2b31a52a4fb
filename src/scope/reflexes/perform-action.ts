import type { Event } from '../../core/event.ts'
import type { ActionEnd } from '../../contract/log-entry.ts'
import type { Accepted } from '../../contract/scope-api.ts'
import type { Settings } from '../../contract/settings.ts'
import type { SkillProposal } from '../../skills/session/proposal.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { Database } from '../database.ts'
import type { Effects } from '../effects/effect-lane.ts'
import type { SessionFor } from '../skills/sessions.ts'
import type { Toolbox } from '../effects/toolbox.ts'
import type { ActionRow, ActionRows } from './action-rows.ts'
import type { LaneWork } from './permit.ts'
import { saidIn } from './said-in.ts'

export type Ended = { status: ActionEnd; error: string | null }
export const OK: Ended = { status: 'ok', error: null }
const REUSED: Ended = { status: 'reused', error: null }

export type Performing = {
  rows: ActionRows
  database: Database
  effects: Effects
  toolbox: Toolbox
  settings: () => Settings
  accept: (events: readonly Event[]) => Accepted
  /** `text` is what was said, which keywords are looked for in. */
  propose: (proposal: SkillProposal, text: string, owner: SessionFor) => Promise<ProposalResult>
}

/** Carries out what a reflex decided. Throws where a call or an event could not be carried out; a skill's end is told. */
export async function performAction(row: ActionRow, parts: Performing, signal: AbortSignal): Promise<Ended> {
  const { reflex_id, idempotence_key, task } = row
  if (idempotence_key !== null && parts.rows.carriedOut(reflex_id, idempotence_key)) return REUSED
  const { work } = task
  if (work.kind === 'event') return send(work, parts, signal)
  return work.kind === 'skill' ? runSkill(work, row, parts, signal) : callTool(work, row, parts, signal)
}

type Work<Kind extends LaneWork['kind']> = Extract<LaneWork, { kind: Kind }>

async function send({ event }: Work<'event'>, { effects, accept }: Performing, signal: AbortSignal): Promise<Ended> {
  const accepted = await effects.exclusively(async () => accept([event]), signal)
  if (!accepted.ok) throw new Error(`the inbox is full (${accepted.depth} of ${accepted.limit})`)
  return OK
}

/** Under the action's own id: after a crash it is given the run that it had. */
async function runSkill({ skill_id, inputs }: Work<'skill'>, row: ActionRow, parts: Performing, signal: AbortSignal): Promise<Ended> {
  const { id, seq, reflex_id, version, task } = row
  const proposal = { skill_id, inputs, why: `reflex ${reflex_id}@${version}` }
  const { status, reason, idempotent } = await parts.propose(proposal, saidIn(parts.database, seq), {
    head: task.head,
    causes: [id],
    signal,
  })
  // What waits for an approval is asked for, and kept until somebody decides: that is all that the reflex can do.
  if (status === 'needs_approval') return OK
  if (status === 'ok') return idempotent ? REUSED : OK
  const error = `skill ${skill_id}: ${status}${reason === null ? '' : `, ${reason}`}`
  return { status: status === 'unknown' ? 'unknown' : 'failed', error }
}

async function callTool({ tool, input }: Work<'tool'>, row: ActionRow, parts: Performing, signal: AbortSignal): Promise<Ended> {
  const { id, reflex_id, version, idempotence_key, task } = row
  const found = parts.toolbox.find(tool)
  if (!found.ok) throw new Error(found.detail)
  await parts.effects.run({
    tool,
    definition: found.definition,
    input,
    key: idempotence_key === null ? null : `${reflex_id} ${idempotence_key}`,
    cause: { by: `reflex:${reflex_id}@${version}` },
    // Its own earlier attempts, before a crash.
    turn_id: id,
    earlier_turns: [id],
    head: task.head,
    signal,
    timeout_ms: parts.settings().effect_timeout_ms,
  })
  return OK
}
