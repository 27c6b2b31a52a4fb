import type { Outcome } from '../../contract/event-record.ts'
import type { Accepted } from '../../contract/scope-api.ts'
import { AwaitsPerson } from '../../tools/anchors.ts'
import type { Event } from '../../core/event.ts'
import { ACTED, endOfFailure, endOfProposal, REUSED, type ActionEnding } from '../../agent/action-end.ts'
import type { LaneWork } from '../../contract/action.ts'
import { ownText } from '../../skills/session/owner.ts'
import type { SkillProposal } from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import type { HeldEffect } from '../effects/effect.ts'
import type { Job } from '../jobs.ts'
import type { SessionFor } from '../skills/sessions.ts'
import { isMiddle } from '../../features/decisions/agent/middle.ts'
import { MOST_DEATHS } from '../upkeep/guard.ts'
import { kindOf, type LaneAction } from './actions.ts'
import type { Lanes } from '../effects/wiring.ts'

/** Maximum number of skill plans that run concurrently, at most one per skill. */
const PLANS_AT_ONCE = 5
/** The pause between attempts of an action that may be repeated. */
const AGAIN_MS = 2000

/**
 * `close` writes the effect's end in the unit that ends the action. `withheld`: it was not
 * attempted.
 */
type Performed = ActionEnding & { close?: HeldEffect['close']; withheld?: true }

type PerformActionParts = Lanes & {
  accept: (events: readonly Event[]) => Accepted
  /** `text` is the event's text, which is searched for keywords. */
  propose: (proposal: SkillProposal, text: string, owner: SessionFor) => Promise<ProposalResult>
}

/**
 * Executes queued reflex actions. After a crash before the unit that ends the action, the job runs
 * again and asks the effect journal whether the effect ended (G1, G8). An event whose effect failed
 * returns to the slow path.
 */
export function handleActions(parts: PerformActionParts): void {
  const handler = {
    work: 'action' as const,
    attempts: MOST_DEATHS,
    run: (job: Job<LaneAction>) => runAction(job, parts),
    giveUp: (job: Job<LaneAction>, reason: string) => {
      const status = mayHaveHappened(parts, job.key) ? ('unknown' as const) : ('failed' as const)
      settle(job, { status, error: reason }, parts)
    },
  }
  parts.jobs.handle('action', { ...handler, at_once: 1 })
  parts.jobs.handle('plan', { ...handler, at_once: PLANS_AT_ONCE })
}

async function runAction(job: Job<LaneAction>, parts: PerformActionParts): Promise<{ again_ms: number } | void> {
  try {
    settle(job, await performAction(job, parts, new AbortController().signal), parts)
  } catch (error) {
    const last = parts.effects.journal.lastOf(job.key)
    const ending = endOfFailure(error, { last, attempts: job.attempts, most: MOST_DEATHS })
    if (!ending) return { again_ms: AGAIN_MS }
    settle(job, ending, parts)
  }
}

function mayHaveHappened({ effects }: PerformActionParts, id: string): boolean {
  const status = effects.journal.lastOf(id)?.status
  return status === 'unknown' || status === 'started'
}

/** Writes the event's outcome, or returns it to the slow path. */
function settle({ key: id, payload }: Job<LaneAction>, { status, error, close, withheld }: Performed, parts: PerformActionParts): void {
  const { action_keys, inbox, memory, shadow_trials, agent, effects, settlement, turns } = parts
  const { seq, reflex_id, version, idempotence_key, work, head, action_type, log_seq, consume } = payload
  const ok = status === 'ok' || status === 'reused'
  parts.unit(
    (ending) => {
      close?.(ending)
      parts.jobs.done(ending, kindOf(work), id)
      if (ok && idempotence_key !== null) action_keys.keep(ending, reflex_id, idempotence_key, work)
      ending.log({ ...head, kind: 'action-ended', reflex_id, version, action_type, status, error })
      effects.forgetTurn(id)
      if (status !== 'reused' && !withheld) shadow_trials.actionEnded(ending, { id: reflex_id, version }, { ok, saves: true })
      if (ok) {
        const outcome: Outcome = isMiddle(reflex_id)
          ? { by: 'decision', log_seq }
          : { by: 'reflex', reflex_id, version, log_seq, ...(status === 'reused' && { reused: true }) }
        settlement.end(ending, [seq], { status: 'completed', outcome, leaves: consume })
      } else if (status === 'failed' && agent().trigger !== null) {
        inbox.unhold(ending, seq)
      } else {
        const reason =
          status === 'unknown'
            ? `the effect of reflex ${reflex_id} has an unknown outcome: check whether it happened, then retry or discard this event`
            : `the action of reflex ${reflex_id} failed: ${error}`
        settlement.end(ending, [seq], { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
      }
      memory.trim(ending)
      parts.guard.done({ kind: 'action', id })
    },
    { kind: 'action', id },
  )
  turns.consider()
}

/** Executes an action. Throws if a tool call or an emission fails; returns how a skill ended. */
async function performAction(job: Job<LaneAction>, parts: PerformActionParts, signal: AbortSignal): Promise<Performed> {
  const { reflex_id, idempotence_key, work } = job.payload
  const lacks = hasBegun(job, parts) ? null : obstacleTo(job.payload, parts)
  if (lacks !== null) return { status: 'failed', error: lacks, withheld: true }
  if (idempotence_key !== null && parts.action_keys.has(reflex_id, idempotence_key)) return REUSED
  if (work.kind === 'event') return send(work, parts, signal)
  return work.kind === 'skill' ? runSkill(work, job, parts, signal) : callTool(work, job, parts, signal)
}

function hasBegun({ key, payload, attempts }: Job<LaneAction>, { effects }: PerformActionParts): boolean {
  return payload.work.kind === 'tool' ? effects.journal.lastOf(key) !== undefined : attempts > 1
}

/** An action without a proof was queued by a version that a person activated. */
const obstacleTo = ({ reflex_id: id, version, proof }: LaneAction, { may_act, now }: PerformActionParts): string | null =>
  proof && may_act.mayStillAct({ id, version }, proof, now())

type Work<Kind extends LaneWork['kind']> = Extract<LaneWork, { kind: Kind }>

async function send({ event }: Work<'event'>, { effects, accept }: PerformActionParts, signal: AbortSignal): Promise<Performed> {
  const accepted = await effects.exclusively(async () => accept([event]), signal)
  if (!accepted.ok) throw new Error(`the inbox is full (${accepted.depth} of ${accepted.limit})`)
  return ACTED
}

/** The job's key is the run's cause, so a repeated job resumes the same run. */
async function runSkill(
  { skill_id, inputs }: Work<'skill'>,
  { key, payload }: Job<LaneAction>,
  parts: PerformActionParts,
  signal: AbortSignal,
): Promise<Performed> {
  const { seq, reflex_id, version, head } = payload
  const row = parts.database.first<{ payload: string }>('SELECT payload FROM events WHERE seq = ?', seq)
  const event = JSON.parse(row?.payload ?? '{}') as Event
  const proposal = { skill_id, inputs, why: `reflex ${reflex_id}@${version}` }
  const result = await parts.propose(proposal, ownText(event), { head, causes: [key], signal, events: [event] })
  return endOfProposal({ ...result, skill_id })
}

async function callTool(
  { tool, input }: Work<'tool'>,
  { key, payload }: Job<LaneAction>,
  parts: PerformActionParts,
  signal: AbortSignal,
): Promise<Performed> {
  const { reflex_id, version, idempotence_key, head } = payload
  const found = parts.toolbox.find(tool)
  if (!found.ok) throw new Error(found.detail)
  const request = {
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
  }
  const held = await parts.effects.hold(request).catch(waiting)
  // As with a skill: the reflex has done its part when a person was asked.
  if (held === null) return ACTED
  if (!held.thrown) return { ...ACTED, close: held.close }
  parts.unit((unit) => held.close(unit), { kind: 'action', id: key })
  throw held.thrown.error
}

function waiting(error: unknown): null {
  if (error instanceof AwaitsPerson) return null
  throw error
}
