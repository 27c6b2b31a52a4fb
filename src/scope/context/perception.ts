import { messageOf, stackOf } from '../../base/error-text.ts'
import { relevant } from '../../core/filter.ts'
import type { Agent } from '../../agent/define-agent.ts'
import type { Outcome, OutcomeStatus } from '../../contract/event-record.ts'
import type { Settings } from '../../contract/settings.ts'
import type { Stored } from '../inbox/event-row.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { Log } from '../log.ts'
import type { Settlement } from '../inbox/settlement.ts'
import type { Chain } from '../reflexes/chain.ts'
import type { Decided } from '../reflexes/fire.ts'
import type { Recordings } from '../reflexes/recordings.ts'
import type { ReflexOutcome } from '../reflexes/reflex-outcome.ts'
import { scopeHead } from '../spans.ts'
import { tellFailure } from '../report-failure.ts'
import type { WorkingMemory } from './working-memory.ts'
import type { Unit } from '../unit.ts'

type Parts = {
  scope: string
  inbox: Inbox
  memory: WorkingMemory
  log: Log
  settlement: Settlement
  chain: Chain
  reflexes: ReflexOutcome
  recordings: Recordings
  agent: () => Agent
  settings: () => Settings
  thinking: () => boolean
}

/**
 * What perceiving an event came to: it joined the context, and waits for a turn (`end` is null) or has ended; no filter wanted it; a filter failed; or nothing
 * perceives here.
 */
export type Verdict =
  | { joined: true; end: End | null; decided: Decided | null }
  | { joined: false; end: End }
  | { joined: false; end: null; error: string | null; stack: string | null }
type End = { status: OutcomeStatus; outcome: Outcome }

/** Step 2: filters decide what joins the DecisionContext. Synchronous and short: it never waits for a turn (G4). */
export class Perception {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Events in order of acceptance (G2). What joins is in the live context from here on; keeping it is the caller's. */
  judge(unit: Unit, stored: readonly Stored[]): Verdict[] {
    if (this.#parts.settings().consumer === 'pull') return stored.map(() => ({ joined: false, end: null, error: null, stack: null }))
    const reason = this.#withoutTurn()
    const end = reason === null ? null : { status: 'completed' as const, outcome: { by: 'perceive' as const, reason } }
    const decide = this.#parts.chain.empty ? null : this.#parts.chain.batch(unit)
    return stored.map((one) => this.#filter(one) ?? { joined: true, end, decided: decide ? this.#decide(unit, one, decide(one)) : null })
  }

  /** Events that are stored already and that no filter has seen yet. Returns how many now wait for a turn. */
  perceive(unit: Unit, stored: readonly Stored[]): number {
    const { recordings, memory, reflexes, settlement, log } = this.#parts
    const verdicts = this.judge(unit, stored)
    const joined = stored.filter((_, index) => stays(verdicts[index]))
    if (joined.length > 0) memory.keep(unit, joined)
    let waiting = 0
    const places: { seq: number; chain_seq: number }[] = []
    for (const [index, one] of stored.entries()) {
      const verdict = verdicts[index]
      const first = log.last + 1
      if (verdict?.joined && verdict.decided) {
        unit.log(...verdict.decided.entries)
        places.push({ seq: one.seq, chain_seq: first })
      }
      const left = verdict?.joined ? reflexes.leaves(verdict.decided, first) : null
      if (left) reflexes.leave(unit, one, left)
      else if (verdict?.end) settlement.end(unit, [one.seq], verdict.end)
      const waits = verdict?.joined === true && (left?.status ?? verdict.end?.status ?? 'pending') === 'pending'
      if (verdict?.joined && verdict.decided) reflexes.begin(unit, one, verdict.decided, { first, waits })
      if (waits) waiting += 1
    }
    recordings.note(unit, places)
    this.retryFailed(unit, stored, verdicts)
    this.trim(unit)
    return waiting
  }

  /** Where no turn will come any more (another agent serves the scope now), what waits for one has only been perceived. */
  endWaiting(unit: Unit): void {
    const { inbox, settlement, settings, agent } = this.#parts
    if (settings().consumer === 'pull' || agent().trigger !== null) return
    settlement.end(unit, inbox.waiting(), {
      status: 'completed',
      outcome: { by: 'perceive', reason: `agent ${agent().name} has no trigger` },
    })
  }

  /** Sends what a filter failed on back for another attempt, or to the dead letters. */
  retryFailed(unit: Unit, stored: readonly Stored[], verdicts: readonly Verdict[]): void {
    const { inbox, settlement, agent, scope } = this.#parts
    const failed = stored.flatMap((one, index) => {
      const verdict = verdicts[index]
      return verdict && 'error' in verdict && verdict.error !== null ? [{ one, error: verdict.error, stack: verdict.stack }] : []
    })
    // The same failure stands once in the log, however many events it is about.
    for (const group of Map.groupBy(failed, ({ error, stack }) => `${error}\n${stack}`).values()) {
      const [{ error, stack } = { error: '', stack: null }] = group
      const event_ids = group.map(({ one }) => one.event.id)
      const log_seq = unit.log({ ...scopeHead(), event_ids, kind: 'filter-failed', agent: agent().name, error, stack })
      tellFailure({ what: 'A filter failed', scope, event_ids, error, stack })
      const failure = settlement.failure(unit, error, log_seq)
      settlement.failed(
        unit,
        inbox.failPerceiving(
          unit,
          group.map(({ one }) => one.seq),
          failure,
        ),
        failure,
      )
    }
  }

  /** Bounds the context; what leaves was considered already. */
  trim(unit: Unit): void {
    const { memory, settings } = this.#parts
    const count = memory.trim(unit)
    if (count > 0) unit.log({ ...scopeHead(), kind: 'context-trimmed', count, context_limit: settings().context_limit })
  }

  /** A filter sees the event in the context's company, before it joins. Null where it has joined. */
  #filter(one: Stored): Verdict | null {
    const { agent, memory } = this.#parts
    try {
      if (!relevant(agent().filters, one.event, memory.live)) return IGNORED
    } catch (error) {
      return { joined: false, end: null, error: `a filter of agent ${agent().name} failed: ${messageOf(error)}`, stack: stackOf(error) }
    }
    memory.add(one)
    return null
  }

  /** What a reflex noted or consumed is so for the next event already. */
  #decide(unit: Unit, one: Stored, decided: Decided): Decided {
    const { memory } = this.#parts
    const { fire } = decided
    if (decided.consumed) memory.take(one.seq)
    if (fire && !fire.reused && fire.action.action_type === 'set_scratch') memory.setScratch(unit, fire.action.key, fire.action.value)
    return decided
  }

  #withoutTurn(): string | null {
    const { agent, settings, thinking } = this.#parts
    if (agent().trigger === null) return `agent ${agent().name} has no trigger`
    if (settings().overlap === 'drop' && thinking()) return 'a turn was in flight, and the overlap policy is drop'
    return null
  }
}

/** Whether the event is in the context. */
export const stays = (verdict: Verdict | undefined): boolean => verdict?.joined === true && verdict.decided?.consumed !== true

const IGNORED: Verdict = { joined: false, end: { status: 'ignored', outcome: { by: 'filter' } } }
