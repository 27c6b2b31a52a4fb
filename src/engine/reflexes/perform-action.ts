import type { Outcome } from '../../contract/event-record.ts'
import type { EffectEnd, EntryOf } from '../../contract/log-entry.ts'
import { endOfFailure, REUSED } from '../../agent/action-end.ts'
import { noSlowPath } from '../../agent/define-agent.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { Job } from '../jobs.ts'
import { MOST_DEATHS } from '../upkeep/guard.ts'
import { kindOf, type LaneAction } from './actions.ts'
import { eventOf, performAct, type Performed } from './perform-act.ts'
import { outputsOf, ownerOf, performSequence, told, type SequenceParts } from './perform-sequence.ts'
import { actsOnPath } from '../../reflexes/sequence.ts'
import { isDecisionId } from '../../contract/reflex.ts'

/** Maximum number of skill plans that run concurrently, at most one per skill. */
const PLANS_AT_ONCE = 5
/** The pause between attempts of an action that may be repeated. */
const AGAIN_MS = 2000

type PerformActionParts = Omit<SequenceParts, 'obstacle'>

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
      const status = mayHaveHappened(parts, ownerOf(job)) ? ('unknown' as const) : ('failed' as const)
      settle(job, told({ status, error: reason }, job), parts)
    },
  }
  parts.jobs.handle('action', { ...handler, at_once: 1 })
  parts.jobs.handle('plan', { ...handler, at_once: PLANS_AT_ONCE })
}

async function runAction(job: Job<LaneAction>, parts: PerformActionParts): Promise<{ again_ms: number } | void> {
  try {
    settle(job, await performAction(job, parts, new AbortController().signal), parts)
  } catch (error) {
    const last = parts.effects.journal.lastOf(ownerOf(job))
    const ending = endOfFailure(error, { last, attempts: job.attempts, most: MOST_DEATHS })
    if (!ending) return { again_ms: AGAIN_MS }
    settle(job, told(ending, job), parts)
  }
}

function mayHaveHappened({ effects }: PerformActionParts, id: string): boolean {
  const status = effects.journal.lastOf(id)?.status
  return status === 'unknown' || status === 'started'
}

/** Writes the event's outcome, or returns it to the slow path. */
function settle(job: Job<LaneAction>, { status, error, close, withheld }: Performed, parts: PerformActionParts): void {
  const { key: id, payload } = job
  const { action_keys, inbox, memory, features, agent, effects, settlement, turns } = parts
  const { seq, reflex_id, version, idempotence_key, work, head, action_type, log_seq, consume } = payload
  const ok = status === 'ok' || status === 'reused'
  parts.unit(
    (ending) => {
      close?.(ending)
      parts.jobs.done(ending, kindOf(work), id)
      if (ok && idempotence_key !== null) action_keys.keep(ending, reflex_id, idempotence_key, work)
      ending.log({ ...head, kind: 'action-ended', reflex_id, version, action_type, status, error, ...actsOf(job, ok ? null : status) })
      const owners = ownersOf(job)
      for (const owner of owners) effects.forgetTurn(owner)
      // A turn that follows finds in the journal what the sequence had done.
      if (!ok && work.kind === 'sequence') inbox.remember(ending, seq, owners)
      if (status !== 'reused' && !withheld)
        for (const feature of features) feature.actionEnded?.(ending, { id: reflex_id, version }, { ok, saves: true })
      if (ok) {
        const outcome: Outcome = isDecisionId(reflex_id)
          ? { by: 'decision', log_seq }
          : { by: 'reflex', reflex_id, version, log_seq, ...(status === 'reused' && { reused: true }) }
        settlement.end(ending, [seq], { status: 'completed', outcome, leaves: consume })
      } else if (status === 'failed' && isReleased(ending, payload, parts)) {
        // A feature answers the event: its job runs once this one has ended.
      } else if (status === 'failed' && noSlowPath(agent(), parts.settings()) === null) {
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

function isReleased(unit: Unit, payload: LaneAction, parts: PerformActionParts): boolean {
  const released = { seq: payload.seq, event: eventOf(payload, parts) }
  return parts.features.some((feature) => feature.released?.(unit, released))
}

/** The acts of a sequence that were begun; the last one ended as `status` if it failed. */
function actsOf({ payload }: Job<LaneAction>, status: EffectEnd | null): Pick<EntryOf<'action-ended'>, 'acts'> {
  const { work, done = [] } = payload
  if (work.kind !== 'sequence') return {}
  const failed = status === null ? undefined : actsOnPath(work, outputsOf(done))?.[done.length]
  return {
    acts: [
      ...done.map((act) => ({ action_type: act.action_type, status: act.status })),
      ...(failed && status !== null ? [{ action_type: failed.action_type, status }] : []),
    ],
  }
}

/** The owners of its journal rows. */
function ownersOf(job: Job<LaneAction>): string[] {
  const { work, done = [] } = job.payload
  if (work.kind !== 'sequence') return [job.key]
  const begun = Math.min(done.length + 1, actsOnPath(work, outputsOf(done))?.length ?? done.length)
  return Array.from({ length: begun }, (_, place) => ownerOf(job, place))
}

/** Executes an action. Throws if a tool call or an emission fails; returns how a skill ended. */
async function performAction(job: Job<LaneAction>, parts: PerformActionParts, signal: AbortSignal): Promise<Performed> {
  const { key: owner, payload } = job
  const { reflex_id, idempotence_key, work, done } = payload
  const obstacle = (queued: LaneAction) => obstacleTo(queued, parts)
  const lacks = hasBegun(job, parts) ? null : obstacle(payload)
  if (lacks !== null) return { status: 'failed', error: lacks, withheld: true }
  if (idempotence_key !== null && !done && parts.action_keys.has(reflex_id, idempotence_key)) return REUSED
  if (work.kind === 'sequence') return performSequence(work, job, { ...parts, obstacle }, signal)
  return performAct(work, { owner, key: idempotence_key, payload, signal }, parts)
}

function hasBegun({ key, payload, attempts }: Job<LaneAction>, { effects }: PerformActionParts): boolean {
  // Each act of a sequence asks for itself.
  if (payload.work.kind === 'sequence') return true
  return payload.work.kind === 'tool' ? effects.journal.lastOf(key) !== undefined : attempts > 1
}

/** An action without a proof was queued by a version that a person activated. */
const obstacleTo = ({ reflex_id: id, version, proof }: LaneAction, { may_act, now }: PerformActionParts): string | null =>
  proof && may_act.mayStillAct({ id, version }, { ...proof, signsOf: () => proof.signs ?? null }, now())
