import type { Collaborators } from '../wiring.ts'
import { scopeHead } from '../log/spans.ts'
import type { Unit } from '../storage/unit.ts'
import { MOST_DEATHS, together } from './guard.ts'

/** Tolerated difference between the clocks of two machines; smaller errors pass as quickly. */
const TOLERATED_MS = 60_000
/** Retry interval of parked retention work, which has no reset. */
const DAY_MS = 86_400_000

/** Guards the object's own work, on waking and at its alarm, so that crashing work is parked. */
export class OwnWork {
  readonly #parts: Collaborators
  #watched = false

  constructor(parts: Collaborators) {
    this.#parts = parts
  }

  async onWaking(): Promise<void> {
    const { guard, jobs, loop, turns, alarm } = this.#parts
    alarm.onRearm(() => this.rest())
    const open = this.#isOpen()
    if (open) await guard.woke()
    this.#parkSettings()
    this.#recover()
    jobs.run()
    loop.perceiveWaiting()
    turns.consider()
    alarm.rearm()
    this.#watched = open
  }

  /** Clears the suspicion once all work from waking has ended without a crash. */
  rest(): void {
    const { guard, turns, jobs, loop } = this.#parts
    if (!this.#watched || turns.busy || jobs.busy || loop.busy) return
    this.#watched = false
    guard.rested()
  }

  /** For the sweep, after a lost alarm. */
  async poke(): Promise<{ wake_at: number | null }> {
    const { database, outbox, alarm } = this.#parts
    // An empty scope has no work, and D1 should not hear of it.
    if (!database.laid) return { wake_at: null }
    outbox.hurry()
    await this.runDue()
    alarm.rearm()
    return { wake_at: alarm.next() }
  }

  /** At an alarm, or when the sweep pokes the scope. */
  async runDue(): Promise<void> {
    const { loop, turns, outbox, reflex_sync, jobs, features, unit, retention } = this.#parts
    this.#forgetWhatIsOld()
    await this.#tick()
    loop.perceiveWaiting()
    turns.consider()
    jobs.wake()
    const background = [outbox.due && outbox.flush(unit), reflex_sync.due && reflex_sync.run()]
    for (const feature of features) background.push(feature.runDue?.() ?? false)
    await this.#parts.alarm.cover(Promise.all([...background.filter((work) => work !== false), retention.archive()]))
  }

  #forgetWhatIsOld(): void {
    const { guard, unit, pull, retention, now } = this.#parts
    unit((unit) => {
      this.#correctClock(unit)
      pull.expire(unit)
    })
    const work = together('retention')
    const parked_at = guard.parkedAt(work)
    if (parked_at !== null && now() - parked_at < DAY_MS) return
    if (parked_at !== null) guard.release(work)
    if (guard.deaths(work) >= MOST_DEATHS) return unit((unit) => guard.park(unit, work, guard.reason(work)))
    unit((unit) => retention.sweep(unit), work)
    guard.done(work)
  }

  async #tick(): Promise<void> {
    const { guard, unit, timers, loop } = this.#parts
    if (!guard.careful('timer')) return unit((unit) => void loop.accept(timers.due(unit, loop.full), 'timer'), together('timer'))
    for (const name of timers.dueNames()) {
      const work = { kind: 'timer' as const, id: name }
      if (await guard.begin(work)) {
        unit((unit) => void loop.accept(timers.due(unit, loop.full, name), 'timer'), work)
        guard.done(work)
      } else {
        unit((unit) => guard.park(unit, work, guard.reason(work)))
      }
    }
    guard.done(together('timer'))
  }

  #parkSettings(): void {
    const { guard, unit, store } = this.#parts
    for (const [name, reason] of store.unusable) {
      const work = { kind: 'setting', id: name } as const
      if (guard.parkedAt(work) === null)
        unit((unit) => guard.park(unit, work, `its default applies until it is set again: ${reason}`), work)
    }
  }

  /** After several crashes, recovers without the log, in case its entries cannot be written. */
  #recover(): void {
    const { guard, unit, effects, turns } = this.#parts
    const work = together('recovery')
    const quiet = guard.deaths(work) >= MOST_DEATHS
    const cause = guard.diedOf()
    const blamed = cause === null || cause === 'turn' || cause === 'recovery'
    unit((unit) => {
      this.#correctClock(unit)
      effects.recover(unit, quiet)
      turns.recover(unit, { quiet, blamed })
    }, work)
    guard.done(work)
  }

  /** Corrects times from a fast clock. The newest log entry shows how far it was ahead. */
  #correctClock(unit: Unit): void {
    const { log, parking, outage, timers } = this.#parts
    const newest = log.newest()
    if (newest === null || newest <= unit.now + TOLERATED_MS) return
    const ahead_ms = newest - unit.now
    parking.correct(unit, ahead_ms)
    outage.moved(unit, ahead_ms)
    timers.correct(unit)
    // Its time becomes the newest, so nothing is corrected twice.
    unit.log({ ...scopeHead(), kind: 'clock-corrected', ahead_ms })
  }

  #isOpen(): boolean {
    const { inbox, timers, jobs, now } = this.#parts
    const timer = timers.nextDue()
    return inbox.open > 0 || jobs.any || (timer !== null && timer <= now())
  }
}
