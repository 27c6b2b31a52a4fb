import { noSlowPath } from '../agent/define-agent.ts'
import { type OverlapSituation, decide, FUEL_PER_BATCH, type ReflexSituation } from '../reflexes/decide.ts'
import type { Clean } from '../base/secrets.ts'
import type { Via } from '../contract/log-entry.ts'
import type { Accepted } from '../contract/scope-api.ts'
import type { Event } from '../core/event.ts'
import { apply, OUTSIDE, type ApplyParts } from './apply.ts'
import type { Next } from './feature.ts'
import { CALLER, together, type GuardedWork, type Guard } from './upkeep/guard.ts'
import { inBackground } from './log/failures.ts'
import type { Stored, Inbox } from './inbox/inbox.ts'
import type { Sockets } from './live/sockets.ts'
import type { Unit, UnitOfWork } from '../kernel/unit.ts'
import type { Lanes } from './effects/wiring.ts'
import type { Settlement } from './inbox/settlement.ts'

type LoopParts = ApplyParts &
  Lanes & {
    sockets: Pick<Sockets, 'reply' | 'feed' | 'hears'>
    situation: (now: number, fuel: number) => ReflexSituation
  }

const PERCEIVE_BATCH = 1000
/** Steps of promises before events are written without the end of their turn: a no takes 15. */
const MOST_HOPS = 100
const never = () => false
const STORED = { via: null, holds: never }

/**
 * The path of an event through its scope:
 *
 * 1. accept: the inbox stores it, once per id.
 * 2. perceive: the agent's filters judge it, and it joins the context.
 * 3. react: the chain of reflexes may act on it. `decide` does 2 and 3, and only reads.
 * 4. act: actions run at once or wait for the effect lane. `apply` writes 1 to 4 in one unit.
 * 5. think: after the commit, `follow` starts a turn, which runs the agent's trigger. If the scope
 *    is idle, the commit waits for a turn that ends within the task, and writes its end as well.
 * 6. settle: the end of the turn or action gives the event its only outcome (G1).
 * 7. replicate: what follows the log (`Follower`) counts and notes it after the commit, and the
 *    outbox copies the outcome to D1.
 *
 * The object's output gate holds the acknowledgement until the unit is on disk. After a crash
 * before that, nothing was answered or stored; after it, the event is pending or has its outcome.
 */
export class Loop {
  readonly #parts: LoopParts
  /** True while events are perceived one by one. */
  #careful = false

  constructor(parts: LoopParts) {
    this.#parts = parts
  }

  get busy(): boolean {
    return this.#careful
  }

  /** True if the inbox accepts no external events. */
  get full(): boolean {
    const { inbox, settings } = this.#parts
    return inbox.open >= settings().inbox_limit
  }

  /**
   * Accepts all events or none. A turn that ends within the task, such as one whose condition does
   * not hold, is written with them. Answers once they are written, before anybody follows.
   */
  arrive(events: readonly Clean<Event>[], via: Via, answer: (accepted: Accepted) => void): void {
    const { turns, inbox, deferred } = this.#parts
    const accepted = this.accept(events, via, () => inbox.open === 0 && turns.startsAtOnce)
    deferred.after(() => answer(accepted))
    if (deferred.unfinished) inBackground(this.#finish())
  }

  /** The turn has ended in the meantime, or the events are written without its end. */
  async #finish(): Promise<void> {
    const { deferred, unit } = this.#parts
    for (let hops = 0; deferred.unfinished && hops < MOST_HOPS; hops += 1) await Promise.resolve()
    if (deferred.unfinished) unit(() => {}, together('turn'))
  }

  /** Accepts all events or none. `holds`: a turn may be written with them, and a unit follows. */
  accept(events: readonly Clean<Event>[], via: Via, holds = never): Accepted {
    const { inbox, view, unit, settings, budget } = this.#parts
    const limit = settings().inbox_limit
    // Always accept timer ticks, which nobody could resend.
    if (via !== 'timer' && !inbox.hasRoom(events, limit)) return { ok: false, reason: 'inbox_full', depth: inbox.open, limit }
    const rows = via === 'timer' ? null : (budget.money()?.rowsSpent() ?? null)
    if (rows !== null) return { ok: false, reason: 'inbox_full', depth: inbox.open, limit, rows }
    // The caller handles a failure, unless the scope's own turn or reflex publishes.
    const of = via === 'agent' || via === 'reflex' ? undefined : CALLER
    const { arrived, fresh, next } = unit((unit) => {
      const arrived = OUTSIDE.has(via) ? this.#heard(events) : inbox.named(unit, events)
      const fresh = inbox.fresh(arrived)
      budget.money()?.noteRows(unit)
      unit.count({ accepted: fresh.length, duplicates: events.length - fresh.length })
      return { arrived, fresh: new Set(fresh.map(({ event }) => event.id)), next: this.#react(unit, fresh, { via, holds }) }
    }, of)
    this.follow(next)
    return { ok: true, receipts: view.receipts(arrived, fresh) }
  }

  /**
   * Marks events whose answer reaches somebody who did not send them, or who sent them another way
   * and listens on a socket.
   */
  #heard(events: readonly Clean<Event>[]): readonly Clean<Event>[] {
    const { sockets, settings } = this.#parts
    return events.map((event) => {
      const { heard, sender } = event.meta
      if (heard) return event
      const isChat = event.type === 'ws.message' ? sockets.feed.size > 0 : sender !== undefined && sockets.hears(sender)
      const isHeard = isChat || settings().webhooks.some(({ on }) => on.includes('event.ended'))
      return isHeard ? { ...event, meta: { ...event.meta, heard: true } } : event
    })
  }

  /** Perceives stored events again, after a filter failed or the settings changed. */
  perceiveWaiting(): void {
    const { guard, inbox, unit, now, settings } = this.#parts
    if (settings().consumer === 'pull' || this.#careful) return
    if (guard.careful('event')) return void this.#perceiveCarefully()
    for (let more = true; more;) {
      const stored = inbox.unperceived(now(), PERCEIVE_BATCH)
      if (stored.length > 0) this.follow(unit((unit) => this.#react(unit, stored, STORED), together('event')))
      more = stored.length === PERCEIVE_BATCH
    }
  }

  /** Ends events that wait for a turn if the agent has no trigger. */
  endWaiting(unit: Unit): void {
    const { inbox, settlement, settings, agent } = this.#parts
    if (settings().consumer === 'pull' || agent().trigger !== null) return
    const reason = `agent ${agent().name} has no trigger`
    settlement.end(unit, inbox.waiting(), { status: 'completed', outcome: { by: 'perceive', reason } })
  }

  /** Does the work that decisions ask for, after the commit. */
  follow(next: readonly Next[]): void {
    const { turns, jobs, sockets, reflex_sync, deferred } = this.#parts
    for (const one of next) {
      if (one.do === 'stop-turn') turns.stop(one)
      if (one.do === 'say') deferred.after(() => sockets.reply({ turn_id: null, event_id: one.event_id, content: one.content }))
    }
    reflex_sync.touch()
    if (next.some((one) => one.do === 'run-jobs')) jobs.run()
    const thinks = next.filter((one) => one.do === 'think')
    const urgent = thinks.some((one) => one.urgent)
    const interrupts = thinks.some((one) => one.interrupts)
    if (thinks.length > 0) turns.arrived({ urgent, interrupts })
  }

  /** Decides on events in order, and applies each part before a decision that changes the chain. */
  #react(unit: Unit, events: readonly Stored[], { via, holds }: { via: Via | null; holds: () => boolean }): Next[] {
    const { situation, memory, agent, inbox, settings } = this.#parts
    const next: Next[] = []
    const how = { via, meeting: this.#meeting(), agent: agent().name, no_slow_path: () => noSlowPath(agent(), settings()), holds }
    let rest = events
    let fuel_left = FUEL_PER_BATCH
    while (rest.length > 0) {
      const { decisions, fuel } = decide(rest, situation(unit.now, fuel_left))
      next.push(...apply(unit, decisions, how, this.#parts))
      rest = rest.slice(decisions.length)
      fuel_left = fuel
    }
    memory.trim(unit, inbox.isHolding)
    return next
  }

  #meeting(): OverlapSituation {
    const { agent, settings, turns } = this.#parts
    return { overlap: settings().overlap, has_trigger: agent().trigger !== null, in_flight: turns.inFlight }
  }

  async #perceiveCarefully(): Promise<void> {
    this.#careful = true
    const perceive = (stored: Stored, work: GuardedWork) => this.#parts.unit((unit) => this.#react(unit, [stored], STORED), work)
    await perceiveOneByOne(this.#parts, (stored, work) => this.follow(perceive(stored, work)))
    this.#careful = false
  }
}

type PerceivingParts = { guard: Guard; inbox: Inbox; settlement: Settlement; unit: UnitOfWork; now: () => number }

/** Isolates the event that made perception crash, and dead-letters it. */
async function perceiveOneByOne(
  { guard, inbox, settlement, unit, now }: PerceivingParts,
  perceive: (stored: Stored, work: GuardedWork) => void,
): Promise<void> {
  try {
    for (let [one] = inbox.unperceived(now(), 1); one; [one] = inbox.unperceived(now(), 1)) {
      const { seq } = one
      const work = { kind: 'event' as const, id: String(seq) }
      if (await guard.begin(work)) {
        perceive(one, work)
        guard.done(work)
      } else {
        const reason = `this event crashed its scope ${guard.deaths(work)} times when it was perceived: ${guard.reason(work)}`
        unit((unit) => {
          settlement.end(unit, [seq], { status: 'dead_lettered', outcome: { by: 'failure', reason }, error: reason })
          guard.park(unit, work, reason)
        }, work)
      }
    }
    guard.done(together('event'))
  } catch {
    // The unit has reported the failure, and the object restarts.
  }
}
