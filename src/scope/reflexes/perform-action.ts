import type { Action } from '../../contract/action.ts'
import type { ActionEnd, EntryHead } from '../../contract/log-entry.ts'
import type { Accepted } from '../../contract/scope-api.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Event } from '../../core/event.ts'
import type { SkillProposal } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { Database } from '../storage/database.ts'
import type { EffectLane, HeldEffect } from '../effects/effect-lane.ts'
import type { Toolbox } from '../effects/toolbox.ts'
import type { Job } from '../jobs.ts'
import type { SessionFor } from '../skills/sessions.ts'
import type { ActionKeys } from './action-keys.ts'
import type { UnitOfWork } from '../storage/unit.ts'
import type { LaneWork } from '../../reflexes/decide.ts'

/** An action as stored in its job. */
export type LaneAction = {
  seq: number
  reflex_id: string
  version: number
  idempotence_key: string | null
  work: LaneWork
  head: EntryHead
  /** The log entry of the firing. */
  log_seq: number
  action_type: Action['action_type']
  consume: boolean
}

/** `close` writes the effect's end in the unit that ends the action. */
export type Performed = { status: ActionEnd; error: string | null; close?: HeldEffect['close'] }

export type Performing = {
  keys: ActionKeys
  database: Database
  effects: EffectLane
  toolbox: Toolbox
  unit: UnitOfWork
  settings: () => Settings
  accept: (events: readonly Event[]) => Accepted
  /** `text` is the event's text, which is searched for keywords. */
  propose: (proposal: SkillProposal, text: string, owner: SessionFor) => Promise<ProposalResult>
}

const OK: Performed = { status: 'ok', error: null }
const REUSED: Performed = { status: 'reused', error: null }

/** Executes an action. Throws if a tool call or an emission fails; returns how a skill ended. */
export async function performAction(job: Job<LaneAction>, parts: Performing, signal: AbortSignal): Promise<Performed> {
  const { reflex_id, idempotence_key, work } = job.payload
  if (idempotence_key !== null && parts.keys.has(reflex_id, idempotence_key)) return REUSED
  if (work.kind === 'event') return send(work, parts, signal)
  return work.kind === 'skill' ? runSkill(work, job, parts, signal) : callTool(work, job, parts, signal)
}

type Work<Kind extends LaneWork['kind']> = Extract<LaneWork, { kind: Kind }>

async function send({ event }: Work<'event'>, { effects, accept }: Performing, signal: AbortSignal): Promise<Performed> {
  const accepted = await effects.exclusively(async () => accept([event]), signal)
  if (!accepted.ok) throw new Error(`the inbox is full (${accepted.depth} of ${accepted.limit})`)
  return OK
}

/** The job's key is the run's cause, so a repeated job resumes the same run. */
async function runSkill(
  { skill_id, inputs }: Work<'skill'>,
  { key, payload }: Job<LaneAction>,
  parts: Performing,
  signal: AbortSignal,
): Promise<Performed> {
  const { seq, reflex_id, version, head } = payload
  const row = parts.database.first<{ payload: string }>('SELECT payload FROM events WHERE seq = ?', seq)
  const event = JSON.parse(row?.payload ?? '{}') as Event
  const proposal = { skill_id, inputs, why: `reflex ${reflex_id}@${version}` }
  const { status, reason, idempotent } = await parts.propose(proposal, textOf(event), { head, causes: [key], signal, events: [event] })
  // A run that needs an approval waits for a person; the reflex is done.
  if (status === 'needs_approval') return OK
  if (status === 'ok') return idempotent ? REUSED : OK
  const error = `skill ${skill_id}: ${status}${reason === null ? '' : `, ${reason}`}`
  return { status: status === 'unknown' ? 'unknown' : 'failed', error }
}

async function callTool(
  { tool, input }: Work<'tool'>,
  { key, payload }: Job<LaneAction>,
  parts: Performing,
  signal: AbortSignal,
): Promise<Performed> {
  const { reflex_id, version, idempotence_key, head } = payload
  const found = parts.toolbox.find(tool)
  if (!found.ok) throw new Error(found.detail)
  const held = await parts.effects.hold({
    tool,
    definition: found.definition,
    input,
    key: idempotence_key === null ? null : `${reflex_id} ${idempotence_key}`,
    cause: { by: `reflex:${reflex_id}@${version}` },
    // Attempts before a crash ran under the same key.
    turn_id: key,
    earlier_turns: [key],
    head,
    signal,
    timeout_ms: parts.settings().effect_timeout_ms,
  })
  if (!held.thrown) return { ...OK, close: held.close }
  parts.unit((unit) => held.close(unit), { kind: 'action', id: key })
  throw held.thrown.error
}

/** The own fields of an event's type, as JSON. */
function textOf({ id: _id, scope: _scope, source: _source, timestamp: _timestamp, meta: _meta, ...own }: Event): string {
  return JSON.stringify(own)
}
