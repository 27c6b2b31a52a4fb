import type { AgentDeps } from '../../agent/define-agent.ts'
import type { Env } from '../../env.ts'
import { messageOf } from '../../base/error-text.ts'
import type { Alarm } from '../alarm.ts'
import { withDeadline } from '../../base/deadline.ts'
import { inBackground } from '../in-background.ts'
import { mapStack } from '../map-stack.ts'
import type { Ending, Turn } from './turn.ts'
import { TurnLedger, type LedgerParts } from './ledger.ts'
import { endingOf, endingOfError, endingWithCalls } from './ending.ts'
import { tellFailure } from '../report-failure.ts'
import { resultOf } from './turn-result.ts'
import type { Unit } from '../unit.ts'

const HEARTBEAT_MS = 20_000
/** Between the start of an interrupted turn and the next start: a burst interrupts a few times, not once an event. */
const INTERRUPT_GAP_MS = 20
/** Newer events interrupt as often as this in a row. */
const MOST_INTERRUPTS = 10

type Parts = LedgerParts & {
  scope: string
  env: Env
  hide: (text: string) => string
  alarm: Alarm
  deps: (turn: Turn) => Promise<AgentDeps>
}

/** A turn that has ended on disk, and whose trigger is to be stopped. */
export type Stopped = { turn: Turn; why: string }

/** The turn lane: when the trigger is evaluated, at most once at a time (G4), and what stops it. */
export class Turns {
  readonly #parts: Parts
  readonly #ledger: TurnLedger
  #current: Turn | null = null
  #scheduled = false
  #starting = false
  /** When the turn that was interrupted last had started. */
  #interrupted = 0
  /** No turn has started since the runtime last had time for timers. */
  #calm = false
  #paused = false
  #interrupts = 0
  #urgent = false
  #debounce: ReturnType<typeof setTimeout> | undefined

  constructor(parts: Parts) {
    this.#parts = parts
    this.#ledger = new TurnLedger(parts)
    parts.alarm.source((now) => (this.#current ? now + HEARTBEAT_MS : null))
    parts.alarm.source((now) => (this.#scheduled ? now + 1000 : null))
    parts.alarm.source((now) => this.debouncedUntil(now))
  }

  get current(): Turn | null {
    return this.#current
  }

  /** A turn is in flight, or about to start. */
  get busy(): boolean {
    return this.#current !== null || this.#scheduled || this.#starting
  }

  /** When a debounced turn may start; null where nothing waits for that. */
  debouncedUntil(now: number): number | null {
    const { overlap, consumer } = this.#parts.settings()
    if (typeof overlap === 'string' || this.#current || consumer === 'pull' || this.#parts.agent().trigger === null) return null
    const window = this.#parts.view.window(now)
    return window && Math.min(window.last + overlap.debounce.quiet_ms, window.first + overlap.debounce.max_ms)
  }

  /** On waking. */
  recover(unit: Unit, how: Parameters<TurnLedger['recover']>[1]): void {
    this.#ledger.recover(unit, how)
  }

  /** Something may have come due: starts a turn unless one is in flight, or the debounce is not over. */
  consider(): void {
    const { settings, agent, inbox, now, alarm } = this.#parts
    if (this.busy || settings().consumer === 'pull' || agent().trigger === null || inbox.open === 0) return
    const start = this.#urgent ? null : this.debouncedUntil(now())
    if (start !== null && start > now()) return this.#later(start)
    this.#scheduled = true
    if (this.#calm && this.#gap() === 0) {
      // In the same task, so that accepting and claiming are one commit. The acknowledgement is sent first.
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
   * The runtime delivers the messages that it has before it runs timers. So events that arrive
   * before this timer fires are a burst, and the next turn considers them together.
   */
  #pauseStarts(): void {
    this.#calm = false
    if (this.#paused) return
    this.#paused = true
    setTimeout(() => {
      this.#paused = false
      if (this.#gap() > 0) return this.#pauseStarts()
      this.#calm = true
      if (this.#scheduled) this.#start()
    }, this.#gap())
  }

  /** New events joined the context. */
  arrived(): void {
    if (this.#current && this.#parts.settings().overlap === 'interrupt' && this.#interrupts < MOST_INTERRUPTS)
      this.#interruptNow(this.#current)
    this.consider()
  }

  /** A reflex wants a turn, debounce or not. */
  escalate(): void {
    this.#urgent = true
    this.consider()
  }

  /** A reflex goes before the turn in flight, whose events are considered again. A turn that was interrupted often is let through. */
  preempt(unit: Unit, reason: string): Stopped | null {
    return this.#current && this.#interrupts < MOST_INTERRUPTS ? this.#interrupt(unit, this.#current, reason) : null
  }

  /** Ends the turn in flight with its events. `stop` follows the commit. */
  cancel(unit: Unit, reason: string, by: string): Stopped | null {
    const turn = this.#current
    if (!turn) return null
    this.#ledger.cancel(unit, turn, reason, by)
    this.#current = null
    return { turn, why: `the turn was cancelled: ${reason}` }
  }

  /** Stops the trigger of a turn that has ended: it has no effect any more. */
  stop({ turn, why }: Stopped): void {
    turn.stop(new Error(why))
    this.#next()
  }

  #start(): void {
    this.#scheduled = false
    this.#urgent = false
    if (this.#current) return
    if (this.#parts.guard.careful('turn')) return void this.#startOne()
    const turn = this.#ledger.claim()
    if (turn) this.#begin(turn)
    else this.#parts.alarm.rearm()
  }

  async #startOne(): Promise<void> {
    if (this.#starting) return
    this.#starting = true
    try {
      const { turn, more } = await this.#ledger.claimOne()
      this.#starting = false
      if (turn) this.#begin(turn)
      else if (more) this.consider()
      else this.#parts.alarm.rearm()
    } catch {
      // The unit has told of it, and the object starts anew.
    }
  }

  #begin(turn: Turn): void {
    this.#current = turn
    this.#pauseStarts()
    this.#parts.alarm.by(this.#parts.now() + HEARTBEAT_MS)
    inBackground(this.#run(turn))
  }

  async #run(turn: Turn): Promise<void> {
    const { agent, settings, deps, env } = this.#parts
    const trigger = agent().trigger
    let ending: Ending
    try {
      const timeout_ms = settings().turn_timeout_ms
      const work = async () => (trigger ? resultOf(trigger, turn, await deps(turn)) : null)
      const result = await withDeadline(work, { signal: turn.signal, timeout_ms, what: 'the turn' })
      ending = endingWithCalls(endingOf(result, turn.seen.context.scratch), turn.failed_calls, settings().on_tool_error)
    } catch (error) {
      ending = endingOfError(error, { now: this.#parts.now(), model: turn.model })
      // At its timeout, before anything else happens: whatever the trigger goes on to do has no effect.
      turn.stop(error instanceof Error ? error : new Error(messageOf(error)))
      if (ending.stack) ending = { ...ending, stack: await mapStack(env, ending.stack) }
    }
    // Cancelled or interrupted meanwhile: it was settled then.
    if (this.#current !== turn) return
    ending = this.#told(turn, ending)
    this.#ledger.settle(turn, ending)
    this.#current = null
    this.#interrupts = 0
    turn.stop(new Error('the turn has ended'))
    this.#next()
  }

  /** Without the deployment's secrets, and told to whoever watches the Worker's output. */
  #told(turn: Turn, ending: Ending): Ending {
    const { scope, hide } = this.#parts
    if (ending.error === null || ending.status === 'interrupted') return ending
    const [error, stack] = [hide(ending.error), ending.stack ? hide(ending.stack) : null]
    const what = ending.status === 'waiting' ? 'A turn waits for the model' : `A turn ended as ${ending.status}`
    if (ending.status !== 'refused' && (ending.status !== 'waiting' || ending.fault))
      tellFailure({ what, scope, event_ids: turn.claimed.map(({ event }) => event.id), error, stack })
    return { ...ending, error, stack }
  }

  /** Overlap policy `interrupt`: everything is considered again, together with what arrived. Where events never cease, a turn is let through in the end. */
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

  #next(): void {
    this.consider()
    if (!this.busy) this.#parts.alarm.rearm()
  }

  /** The alarm is the durable clock; the timer is exact while the object lives. */
  #later(start: number): void {
    this.#parts.alarm.by(start)
    clearTimeout(this.#debounce)
    this.#debounce = setTimeout(() => this.consider(), start - this.#parts.now())
  }
}
