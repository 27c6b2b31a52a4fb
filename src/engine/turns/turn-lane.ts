import type { InFlight } from '../../contract/event-record.ts'
import type { Requested } from '../../contract/log-entry.ts'
import type { AgentDeps } from '../../agent/define-agent.ts'
import { messageOf } from '../../base/error-text.ts'
import { withDeadline } from '../../base/deadline.ts'
import { inBackground, mapStack, tellFailure } from '../log/failures.ts'
import { type Stopped, type Turn } from './turn.ts'
import { HEARTBEAT_MS, TurnClaims, type LedgerParts, TurnLedger } from './ledger.ts'
import { type TurnEnding, endingOf, endingOfError, endingWithCalls, resultOf } from '../../agent/turn-ending.ts'
import { MOST_INTERRUPTS } from '../../reflexes/decide.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { Reflexes } from '../reflexes/wiring.ts'

/** Minimum time between an interrupted turn's start and the next: a burst interrupts few. */
const INTERRUPT_GAP_MS = 20
/** Pause after a turn that could not be claimed. */
const RETRY_MS = 1000
/** Turns that end within their tasks, before a burst of events is gathered for one turn. */
const MOST_AT_ONCE = 8

type TurnLaneParts = LedgerParts &
  Pick<Reflexes, 'scope' | 'env' | 'alarm'> & {
    hide: (text: string) => string
  }

/** The turn lane: starts and stops turns, at most one at a time (G4). */
export class Turns {
  readonly #parts: TurnLaneParts
  readonly #claims: TurnClaims
  readonly #ledger: TurnLedger
  #deps: (turn: Turn) => Promise<AgentDeps> = () => Promise.reject(new Error('no handler runs turns'))
  #current: Turn | null = null
  #scheduled = false
  #starting = false
  /** Start of the turn that was interrupted last. */
  #interrupted = 0
  /** True if no turn, or few that ended at once, started since the runtime last ran timers. */
  #calm = true
  #at_once = 0
  #paused = false
  #interrupts = 0
  #urgent = false
  #debounce: ReturnType<typeof setTimeout> | undefined

  constructor(parts: TurnLaneParts) {
    this.#parts = parts
    this.#claims = new TurnClaims(parts)
    this.#ledger = new TurnLedger(parts, this.#claims)
    parts.alarm.source((now) => (this.#current?.held ? now + HEARTBEAT_MS : this.#scheduled ? now + 1000 : null))
    parts.alarm.source((now) => this.debouncedUntil(now))
    parts.alarm.source((now) => (parts.inbox.open === 0 ? null : parts.budget.looksAt(now, parts.parking)))
  }

  /** Registers what builds the trigger's dependencies. */
  handle(deps: (turn: Turn) => Promise<AgentDeps>): void {
    this.#deps = deps
  }

  get current(): Turn | null {
    return this.#current
  }

  get inFlight(): InFlight | null {
    const { turn_id, full } = this.#current ?? {}
    return turn_id === undefined ? null : { turn_id, interrupts: this.#interrupts, ...(full && { full }) }
  }

  /** True if a turn is running or about to start. */
  get busy(): boolean {
    return this.#current !== null || this.#scheduled || this.#starting
  }

  /** True if a turn on an event that arrives now starts within the task. */
  get startsAtOnce(): boolean {
    const { settings, agent, guard } = this.#parts
    const { paused, consumer, overlap } = settings()
    if (this.busy || !this.#calm || this.#gap() > 0 || paused || consumer === 'pull' || typeof overlap !== 'string') return false
    return agent().trigger !== null && !guard.careful('turn')
  }

  /** Earliest start of a debounced turn; null if no event waits for the debounce. */
  debouncedUntil(now: number): number | null {
    const { overlap, consumer } = this.#parts.settings()
    if (typeof overlap === 'string' || this.#current || consumer === 'pull' || this.#parts.agent().trigger === null) return null
    const window = this.#parts.view.window(now)
    return window && Math.min(window.last + overlap.debounce.quiet_ms, window.first + overlap.debounce.max_ms)
  }

  recover(unit: Unit, how: Parameters<TurnClaims['recover']>[1]): void {
    this.#claims.recover(unit, how)
  }

  /** Starts a turn if events are due, none is running and the debounce is over. */
  consider(): void {
    const { settings, agent, inbox, now, alarm } = this.#parts
    if (this.busy || settings().paused || settings().consumer === 'pull' || agent().trigger === null || inbox.open === 0) return
    const start = this.#urgent ? null : this.debouncedUntil(now())
    if (start !== null && start > now()) return this.#later(start)
    this.#scheduled = true
    if (this.#calm && this.#gap() === 0) {
      // Accept and claim in one commit: start in the same task, after the acknowledgement is sent.
      queueMicrotask(() => this.#start())
    } else {
      alarm.by(now() + 1000)
      this.#pauseStarts()
    }
  }

  #gap(): number {
    return Math.max(0, this.#interrupted + INTERRUPT_GAP_MS - this.#parts.now())
  }

  /**
   * Delays the next turn by a timer. The runtime delivers queued messages before timers, so the
   * turn considers a burst of events together.
   */
  #pauseStarts(): void {
    this.#calm = false
    if (this.#paused) return
    this.#paused = true
    setTimeout(() => {
      this.#paused = false
      if (this.#gap() > 0) return this.#pauseStarts()
      this.#calm = true
      this.#at_once = 0
      if (this.#scheduled) this.#start()
    }, this.#gap())
  }

  /** `urgent`: for a reflex, ignoring the debounce. `interrupts`: as the overlap policy decided. */
  arrived({ urgent, interrupts }: { urgent: boolean; interrupts: boolean }): void {
    if (interrupts && this.#current && !this.#current.full) this.#interruptNow(this.#current)
    if (urgent) this.#urgent = true
    this.consider()
  }

  /** Interrupts the turn for a reflex, unless too many turns in a row were interrupted. */
  preempt(unit: Unit, reason: string): Stopped | null {
    return this.#current && this.#interrupts < MOST_INTERRUPTS ? this.#interrupt(unit, this.#current, reason) : null
  }

  /** Cancels the running turn and its events. Call `stop` after the commit. */
  cancel(unit: Unit, reason: string, by: Requested): Stopped | null {
    const turn = this.#current
    if (!turn) return null
    this.#ledger.cancel(unit, turn, reason, by)
    this.#current = null
    return { turn, why: `the turn was cancelled: ${reason}` }
  }

  cancelCurrent(reason: string, by: Requested) {
    const stopped = this.#parts.unit((unit) => this.cancel(unit, reason, by))
    if (stopped) this.stop(stopped)
    return { cancelled: stopped !== null, turn_id: stopped?.turn.turn_id ?? null, events: stopped?.turn.claimed.length ?? 0 }
  }

  /** Stops the trigger of a turn that has ended. */
  stop({ turn, why }: Stopped): void {
    turn.stop(new Error(why))
    this.#next()
  }

  #start(): void {
    this.#scheduled = false
    const urgent = this.#urgent
    this.#urgent = false
    if (this.#current || this.#parts.settings().paused) return
    if (this.#parts.guard.careful('turn')) return inBackground(this.#startOne())
    const turn = this.#claims.claim()
    // The urgent event may be one that the turn has left to the next.
    this.#urgent = urgent && turn?.full === true
    if (turn) this.#begin(turn)
    else this.#parts.alarm.rearm()
  }

  async #startOne(): Promise<void> {
    if (this.#starting) return
    this.#starting = true
    try {
      const { turn, more } = await this.#claims.claimOne()
      this.#starting = false
      if (turn) this.#begin(turn)
      else if (more) this.consider()
      else this.#parts.alarm.rearm()
    } catch {
      // If a unit failed, the object restarts. The guard alone may have: the alarm tries again.
      this.#starting = false
      this.#parts.alarm.by(this.#parts.now() + RETRY_MS)
    }
  }

  #begin(turn: Turn): void {
    this.#current = turn
    this.#pauseStarts()
    inBackground(this.#run(turn))
    setTimeout(() => this.#claims.hold(turn), 0)
  }

  async #run(turn: Turn): Promise<void> {
    const { agent, settings, env } = this.#parts
    const { trigger } = agent()
    let ending: TurnEnding
    try {
      const { turn_timeout_ms: timeout_ms } = settings()
      const work = async () => (trigger ? resultOf(trigger, turn, await this.#deps(turn)) : null)
      const result = await withDeadline(work, { signal: turn.signal, timeout_ms, what: 'the turn' })
      ending = endingWithCalls(endingOf(result, turn.seen.context.scratch), turn.failed_calls, settings().on_tool_error)
    } catch (error) {
      ending = endingOfError(error, { now: this.#parts.now(), model: turn.model })
      // Stop at once, so that nothing the trigger does from now on has an effect.
      turn.stop(error instanceof Error ? error : new Error(messageOf(error)))
      if (ending.stack) ending = { ...ending, stack: await mapStack(env, ending.stack) }
    }
    // A cancelled or interrupted turn is already settled.
    if (this.#current !== turn) return
    ending = this.#told(turn, ending)
    if (!turn.held && (this.#at_once += 1) < MOST_AT_ONCE) this.#calm = true
    this.#ledger.settle(turn, ending)
    this.#current = null
    this.#interrupts = 0
    turn.stop(new Error('the turn has ended'))
    this.#next(turn.held)
  }

  /** Removes the deployment's secrets and reports a failure to the Worker's log. */
  #told(turn: Turn, ending: TurnEnding): TurnEnding {
    const { scope, hide, log } = this.#parts
    if (ending.error === null || ending.status === 'interrupted') return ending
    const quotes = log.masks.of(turn.head.trace_id)
    const error = quotes.text(hide(ending.error))
    const stack = ending.stack ? quotes.text(hide(ending.stack)) : null
    const what = ending.status === 'waiting' ? 'A turn waits for the model' : `A turn ended as ${ending.status}`
    if (ending.status !== 'refused' && (ending.status !== 'waiting' || ending.fault))
      tellFailure({ what, scope, event_ids: turn.claimed.map(({ event }) => event.id), error, stack })
    return { ...ending, error, stack }
  }

  /** Makes the turn's events pending again, to be considered with the new ones. */
  #interrupt(unit: Unit, turn: Turn, reason: string): Stopped {
    this.#interrupts += 1
    this.#interrupted = turn.since
    this.#ledger.interrupt(unit, turn, reason)
    this.#current = null
    return { turn, why: `the turn was interrupted: ${reason}` }
  }

  #interruptNow(turn: Turn): void {
    const reason = 'events arrived, and the overlap policy is interrupt'
    const { why } = this.#parts.unit((unit) => this.#interrupt(unit, turn, reason))
    turn.stop(new Error(why))
  }

  /** A turn that wrote no claim did not change the alarm. */
  #next(changed = true): void {
    this.consider()
    if (changed && !this.busy) this.#parts.alarm.rearm()
  }

  /** The alarm is durable; the timer is exact while the object lives. */
  #later(start: number): void {
    this.#parts.alarm.by(start)
    clearTimeout(this.#debounce)
    this.#debounce = setTimeout(() => this.consider(), start - this.#parts.now())
  }
}
