import { withinTime } from '../../base/deadline.ts'

/** Returns the time at which a source of work is due, or null. */
export type Due = (now: number) => number | null

/** When work that the object may not survive is retried. */
const SAFETY_MS = 30_000
/** Longest time that an alarm waits for its background work, which delays the next alarm. */
const SLOW_MS = 500

/** The only writer of the object's alarm: sets it to the earliest due time. */
export class Alarm {
  readonly #storage: DurableObjectStorage
  readonly #now: () => number
  readonly #laid: () => boolean
  readonly #sources: Due[] = []
  readonly #safeties = new Set<number>()
  #at: number | null = null
  /** True while the handler of an alarm runs. */
  #running = false
  /** Earliest future time that was asked for meanwhile: it may be past at the handler's end. */
  #asked = Number.POSITIVE_INFINITY
  #rearmed: () => void = () => {}

  /** `laid`: the scope has stored data. Before that, an alarm would only create storage. */
  constructor(storage: DurableObjectStorage, { now, laid }: { now: () => number; laid: () => boolean }) {
    this.#storage = storage
    this.#now = now
    this.#laid = laid
  }

  /** Registers a callback for each end of a piece of work. */
  onRearm(rearmed: () => void): void {
    this.#rearmed = rearmed
  }

  get at(): number | null {
    return this.#at
  }

  source(due: Due): void {
    this.#sources.push(due)
  }

  /** Sets the alarm to `at` unless it is earlier already. */
  by(at: number): void {
    if (this.#running && at > this.#now()) this.#asked = Math.min(this.#asked, at)
    // An overdue alarm may have been lost.
    if (this.#at !== null && this.#at <= at && this.#at >= this.#now()) return
    this.#set(at)
  }

  /**
   * Runs the work of an alarm that fired, then sets the next. Meanwhile no alarm is set: if the
   * object dies, the platform repeats the handler.
   */
  async fired(work: () => Promise<void>): Promise<void> {
    this.#at = null
    this.#running = true
    try {
      await work()
    } catch (error) {
      this.#running = false
      this.by(this.#now() + SAFETY_MS)
      throw error
    }
    const asked = this.#asked
    this.#running = false
    this.#asked = Number.POSITIVE_INFINITY
    this.rearm()
    if (Number.isFinite(asked)) this.by(asked)
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

  /** Sets the alarm to the next due time, or clears it. */
  rearm(): void {
    this.#rearmed()
    const next = this.next()
    if (next !== this.#at) this.#set(next)
  }

  /** The earliest due time, never in the past. */
  next(): number | null {
    const now = this.#now()
    const times = [...this.#sources.map((due) => due(now)).filter((at) => at !== null), ...this.#safeties]
    return times.length > 0 ? Math.max(now, Math.min(...times)) : null
  }

  #set(at: number | null): void {
    if (!this.#laid() || this.#running) return
    this.#at = at
    // Not awaited: the write joins the transaction, and a failure resets the object.
    void (at === null ? this.#storage.deleteAlarm() : this.#storage.setAlarm(at))
  }
}
