import { v7 as uuidv7 } from 'uuid'
import type { Agent } from '../../agent/define-agent.ts'
import { messageOf } from '../../base/error-text.ts'
import { isPlatformFault } from '../../base/faults.ts'
import type { Outcome } from '../../contract/event-record.ts'
import type { WorkingMemory } from '../context/working-memory.ts'
import { MOST_DEATHS, type Guard } from '../upkeep/guard.ts'
import type { Stored } from '../inbox/event-row.ts'
import type { Settlement } from '../inbox/settlement.ts'
import type { Job, JobKind, Jobs } from '../jobs.ts'
import { childHead, headOf } from '../log/spans.ts'
import type { Unit, UnitOfWork } from '../storage/unit.ts'
import type { Fire, LaneWork } from '../../reflexes/decide.ts'
import type { Inbox } from '../inbox/inbox.ts'
import { performAction, type LaneAction, type Performed, type Performing } from './perform-action.ts'
import type { Proving } from './shadow.ts'

/** Maximum number of skill plans that run concurrently, at most one per skill. */
const PLANS_AT_ONCE = 5
/** The pause between attempts of an action that may be repeated. */
const AGAIN_MS = 2000

type ActionParts = Performing & {
  scope: string
  jobs: Jobs
  guard: Guard
  inbox: Inbox
  memory: WorkingMemory
  settlement: Settlement
  proving: Proving
  unit: UnitOfWork
  agent: () => Agent
  /** Schedules a turn if an event waits for one. */
  consider: () => void
}

/**
 * Executes reflex actions. An action that changes only this scope is applied in the unit that
 * accepts the event. Any other is a job: it takes the effect lane beside a running turn, and its
 * event is held until it ends. A plan takes the lane step by step. A crash before the job is
 * written leaves the event unaccepted. After a crash before the unit that ends the action, the job
 * runs again and asks the effect journal whether the effect ended (G1, G8). An event whose effect
 * failed returns to the slow path.
 */
export class Actions {
  readonly #parts: ActionParts

  constructor(parts: ActionParts) {
    this.#parts = parts
    const handler = {
      work: 'action' as const,
      attempts: MOST_DEATHS,
      run: (job: Job<LaneAction>) => this.#run(job),
      giveUp: (job: Job<LaneAction>, reason: string) => {
        const status = this.#mayHaveHappened(job.key) ? ('unknown' as const) : ('failed' as const)
        this.#settle(job, { status, error: reason })
      },
    }
    parts.jobs.handle('action', { ...handler, at_once: 1 })
    parts.jobs.handle('plan', { ...handler, at_once: PLANS_AT_ONCE })
  }

  /** True if a job, running or queued, calls this tool under this key. */
  waits(tool: string, key: string): boolean {
    const { jobs, toolbox } = this.#parts
    const waiting = jobs.payloads<LaneAction>('action', '$.work.tool', tool)
    return waiting.some(({ work }) => work.kind === 'tool' && toolbox.keyOf(tool, work.input)?.idempotence_key === key)
  }

  /** Queues lane work, or stores the key of an action that is already done. */
  add(unit: Unit, fire: Fire, stored: Stored, log_seq: number): void {
    const { action, permitted, version } = fire
    if (permitted.lane) this.#enqueue(unit, fire, permitted.work, stored, log_seq)
    else if (action.idempotence_key !== undefined) this.#parts.keys.keep(unit, version.id, action.idempotence_key, null)
  }

  #enqueue(unit: Unit, { action, version }: Fire, work: LaneWork, { seq, event }: Stored, log_seq: number): void {
    const { action_type, consume = false, idempotence_key = null } = action
    const head = childHead(headOf(event))
    const payload: LaneAction = {
      seq,
      reflex_id: version.id,
      version: version.version,
      idempotence_key,
      work,
      head,
      log_seq,
      action_type,
      consume,
    }
    const locks = [
      ...(work.kind === 'skill' ? [`skill ${work.skill_id}`] : []),
      ...(idempotence_key === null ? [] : [`key ${version.id} ${idempotence_key}`]),
    ]
    this.#parts.jobs.add(unit, { kind: kindOf(work), key: uuidv7(), payload, locks })
  }

  async #run(job: Job<LaneAction>): Promise<{ again_ms: number } | void> {
    try {
      this.#settle(job, await performAction(job, this.#parts, new AbortController().signal))
    } catch (error) {
      const unknown = this.#mayHaveHappened(job.key)
      const last = this.#parts.effects.journal.lastOf(job.key)
      const again = last === undefined ? isPlatformFault(error) : unknown && last.idempotence_key !== null
      if (again && job.attempts < MOST_DEATHS) return { again_ms: AGAIN_MS }
      this.#settle(job, { status: unknown ? 'unknown' : 'failed', error: messageOf(error) })
    }
  }

  #mayHaveHappened(id: string): boolean {
    const status = this.#parts.effects.journal.lastOf(id)?.status
    return status === 'unknown' || status === 'started'
  }

  /**
   * Writes the event's outcome, or returns it to the slow path, in the unit that ends the action.
   */
  #settle({ key: id, payload }: Job<LaneAction>, { status, error, close }: Performed): void {
    const { unit, jobs, guard, keys, inbox, memory, proving, agent, effects, settlement, consider } = this.#parts
    const { seq, reflex_id, version, idempotence_key, work, head, action_type, log_seq, consume } = payload
    const ok = status === 'ok' || status === 'reused'
    unit(
      (ending) => {
        close?.(ending)
        jobs.done(ending, kindOf(work), id)
        if (ok && idempotence_key !== null) keys.keep(ending, reflex_id, idempotence_key, work)
        ending.log({ ...head, kind: 'action-ended', reflex_id, version, action_type, status, error })
        effects.forgetTurn(id)
        if (status !== 'reused') proving.acted(ending, { id: reflex_id, version }, { ok, saves: true })
        if (ok) {
          const outcome: Outcome = { by: 'reflex', reflex_id, version, log_seq, ...(status === 'reused' && { reused: true }) }
          settlement.end(ending, [seq], { status: 'completed', outcome })
          if (consume) memory.leave(ending, [seq])
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
        guard.done({ kind: 'action', id })
      },
      { kind: 'action', id },
    )
    consider()
  }
}

const kindOf = (work: LaneWork): JobKind => (work.kind === 'skill' ? 'plan' : 'action')
