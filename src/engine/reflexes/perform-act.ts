import { ACTED, endOfProposal, type ActionEnding } from '../../agent/action-end.ts'
import type { Json } from '../../base/json.ts'
import type { LaneWork } from '../../contract/action.ts'
import type { Accepted } from '../../contract/scope-api.ts'
import type { Event } from '../../core/event.ts'
import { ownText } from '../../skills/session/context.ts'
import type { SkillProposal } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import { isPlatformFault } from '../../base/faults.ts'
import { failureOf } from '../../reflexes/sequence.ts'
import { AwaitsPerson, onlyReads } from '../../tools/define-tool.ts'
import { isOfSequence } from '../effects/effect-journal.ts'
import type { HeldEffect } from '../effects/effect.ts'
import type { Lanes } from '../effects/wiring.ts'
import type { SessionFor } from '../skills/sessions.ts'
import type { LaneAction } from './actions.ts'

/**
 * `close` writes the effect's end in the unit that ends the action. `withheld`: it was not
 * attempted. `asks`: a person was asked, and it has not happened yet. `answered`: the id of what an
 * earlier attempt did, which is not repeated. `output`: `NOT_KEPT` if it had one that the journal
 * does not have. `failed_read`: it only reads, and its output says how it failed.
 */
export type Performed = ActionEnding & {
  close?: HeldEffect['close']
  withheld?: true
  output?: Json | typeof NOT_KEPT
  asks?: true
  answered?: string
  failed_read?: true
}
export const NOT_KEPT = Symbol('an output that was not kept')

export type ActParts = Lanes & {
  accept: (events: readonly Event[]) => Accepted
  /** `text` is the event's text, which is searched for keywords. */
  propose: (proposal: SkillProposal, text: string, owner: SessionFor) => Promise<ProposalResult>
}

/**
 * `owner`: of its rows in the journal. `key`: of its call, if the reflex gave one. `answered`: what
 * earlier attempts did, and answered an earlier act of the sequence. `may_fail`: what follows
 * depends on how a call that only reads ends.
 */
type Doing = {
  owner: string
  key: string | null
  payload: LaneAction
  signal: AbortSignal
  answered?: ReadonlySet<string>
  may_fail?: boolean
}

/** Does one act in the effect lane. Throws if a tool call or an emission fails. */
export async function performAct(work: Exclude<LaneWork, { kind: 'sequence' }>, doing: Doing, parts: ActParts): Promise<Performed> {
  if (work.kind === 'event') return send(work, doing, parts)
  return work.kind === 'skill' ? runSkill(work, doing, parts) : callTool(work, doing, parts)
}

/** The event that a queued action is about. */
export function eventOf({ seq }: LaneAction, { database }: Pick<Lanes, 'database'>): Event {
  const row = database.first<{ payload: string }>('SELECT payload FROM events WHERE seq = ?', seq)
  return JSON.parse(row?.payload ?? '{}') as Event
}

type Work<Kind extends LaneWork['kind']> = Extract<LaneWork, { kind: Kind }>

async function send({ event }: Work<'event'>, { signal }: Doing, { effects, accept }: ActParts): Promise<Performed> {
  const accepted = await effects.exclusively(async () => accept([event]), signal)
  if (!accepted.ok) throw new Error(`the inbox is full (${accepted.depth} of ${accepted.limit})`)
  return ACTED
}

/** The owner is the run's cause, so a repeated job resumes the same run. */
async function runSkill({ skill_id, inputs }: Work<'skill'>, { owner, payload, signal }: Doing, parts: ActParts): Promise<Performed> {
  const { seq, reflex_id, version, head } = payload
  const event = eventOf(payload, parts)
  const proposal = { skill_id, inputs, why: `reflex ${reflex_id}@${version}` }
  // The journal answers for the acts of sequences, one for one.
  const turns = parts.view.earlierTurns([seq]).filter((earlier) => !isOfSequence(earlier))
  const result = await parts.propose(proposal, ownText(event), { head, causes: [owner, ...turns], signal, events: [event] })
  const ending = endOfProposal({ ...result, skill_id })
  return { ...ending, output: result.outputs, ...(result.status === 'needs_approval' && { asks: true as const }) }
}

async function callTool({ tool, input }: Work<'tool'>, doing: Doing, parts: ActParts): Promise<Performed> {
  const { owner, key, payload, signal, answered, may_fail = false } = doing
  const { seq, reflex_id, version, head } = payload
  const found = parts.toolbox.find(tool)
  if (!found.ok) throw new Error(found.detail)
  const request = {
    tool,
    definition: found.definition,
    input,
    key: key === null ? null : `${reflex_id} ${key}`,
    cause: { by: `reflex:${reflex_id}@${version}` },
    // Attempts before a crash ran under the same owner; a dead letter is tried again under another.
    turn_id: owner,
    earlier_turns: [owner, ...parts.view.earlierTurns([seq])],
    ...(answered && { answered }),
    head,
    signal,
    timeout_ms: parts.settings().effect_timeout_ms,
  }
  const held = await parts.effects.hold(request).catch(waiting)
  // As with a skill: the reflex has done its part when a person was asked.
  if (held === null) return { ...ACTED, asks: true }
  if (!held.thrown)
    return {
      ...ACTED,
      close: held.close,
      output: held.result.error === null ? (held.result.output as Json) : NOT_KEPT,
      ...(held.answered !== undefined && { answered: held.answered }),
    }
  const { status, error } = held.result
  const is_read = may_fail && status === 'failed' && onlyReads(found.definition) && !isPlatformFault(held.thrown.error)
  if (is_read && error !== null) return { status, error, close: held.close, output: failureOf(error), failed_read: true }
  parts.unit((unit) => held.close(unit), { kind: 'action', id: owner })
  throw held.thrown.error
}

function waiting(error: unknown): null {
  if (error instanceof AwaitsPerson) return null
  throw error
}
