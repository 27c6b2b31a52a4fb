import { withinTime } from '../base/deadline.ts'

/** Returns the first time after `since` at which a source of work is due, or null. */
export type DueTime = (since: number) => number | null

/** When work that the object may not survive is retried. */
const SAFETY_MS = 30_000
/** Longest time that an alarm waits for its background work, which delays the next alarm. */
const SLOW_MS = 500

type AlarmParts = { now?: () => number; database?: { readonly laid: boolean } }

/** The only writer of the object's alarm: sets it to the earliest due time. */
export class Alarm {
  readonly #storage: DurableObjectStorage
  readonly #now: () => number
  readonly #database: { readonly laid: boolean }
  readonly #sources: DueTime[] = []
  readonly #safeties = new Set<number>()
  #at: number | null = null
  /** True while the handler of an alarm runs. */
  #running = false
  #rearmed: () => void = () => {}

  constructor(storage: DurableObjectStorage, { now = Date.now, database = { laid: true } }: AlarmParts = {}) {
    this.#storage = storage
    this.#now = now
    this.#database = database
  }

  /** Registers a callback for each end of a piece of work. */
  onRearm(rearmed: () => void): void {
    this.#rearmed = rearmed
  }

  get at(): number | null {
    return this.#at
  }

  /** On waking: reads the alarm that is set, which is set again only if it is to be another. */
  async woke(): Promise<void> {
    if (this.#database.laid) this.#at = await this.#storage.getAlarm()
  }

  source(due: DueTime): void {
    this.#sources.push(due)
  }

  /** Sets the alarm to `at` unless it is earlier already. */
  by(at: number): void {
    // An overdue alarm may have been lost.
    if (this.#at !== null && this.#at <= at && this.#at >= this.#now()) return
    this.#set(at)
  }

  /** After a change: sets the alarm to the next time unless it is earlier already. */
  arm(): void {
    const next = this.next()
    if (next !== null) this.by(next)
  }

  /**
   * Runs the work of an alarm that fired, then sets the next. Meanwhile no alarm is set: if the
   * object dies, the platform repeats the handler.
   */
  async fired(work: () => Promise<void>): Promise<void> {
    const began = this.#now()
    this.#at = null
    this.#running = true
    try {
      await work()
    } catch (error) {
      this.#running = false
      this.by(this.#now() + SAFETY_MS)
      throw error
    }
    this.#running = false
    // The work may have looked at its start: what became due since then is still to be done.
    this.rearm(began)
  }

  /** Waits for background work of the alarm. If it is slow, an alarm of its own covers it. */
  async cover(work: Promise<unknown>): Promise<void> {
    const within = await withinTime(() => work, { timeout_ms: SLOW_MS })
    if (within.ended === 'threw') throw within.error
    if (within.ended !== 'timeout') return
    const at = this.#now() + SAFETY_MS
    this.#safeties.add(at)
    this.by(at)
    void work.finally(() => this.#safeties.delete(at)).catch(() => {})
  }

  /** Sets the alarm to the next time that is due after `since`, or clears it. */
  rearm(since = this.#now()): void {
    this.#rearmed()
    const now = this.#now()
    // An overdue alarm still has to fire: the sources no longer name the time that it is for.
    const overdue_ms = this.#at === null || this.#at > now ? null : now - this.#at
    const next = overdue_ms === null ? this.next(since) : overdue_ms < SAFETY_MS ? this.#at : now
    if (next !== this.#at) this.#set(next)
  }

  /** The earliest time that is due after `since`, never in the past. */
  next(since = this.#now()): number | null {
    const times = [...this.#sources.map((due) => due(since)).filter((at) => at !== null), ...this.#safeties]
    return times.length > 0 ? Math.max(this.#now(), Math.min(...times)) : null
  }

  #set(at: number | null): void {
    // An alarm of a scope that has stored nothing would only create storage.
    if (!this.#database.laid || this.#running) return
    this.#at = at
    // Not awaited: the write joins the transaction, and a failure resets the object.
    void (at === null ? this.#storage.deleteAlarm() : this.#storage.setAlarm(at))
  }
}
