/** Something that wants the object awake at a time. */
export type Due = (now: number) => number | null

/** How long to wait for a next try when the work of an alarm itself fails. */
const SAFETY_MS = 30_000

/** The one place that sets the object's alarm: the earliest of all that is due. */
export class Alarm {
  readonly #storage: DurableObjectStorage
  readonly #now: () => number
  readonly #laid: () => boolean
  readonly #sources: Due[] = []
  #at: number | null = null
  #rearmed: () => void = () => {}

  /**
   * `laid`: whether the scope has written anything. Until then there is nothing to wake for, and an
   * alarm would be kept.
   */
  constructor(storage: DurableObjectStorage, { now, laid }: { now: () => number; laid: () => boolean }) {
    this.#storage = storage
    this.#now = now
    this.#laid = laid
  }

  /** Called each time that a piece of work has come to its end. */
  onRearm(rearmed: () => void): void {
    this.#rearmed = rearmed
  }

  get at(): number | null {
    return this.#at
  }

  source(due: Due): void {
    this.#sources.push(due)
  }

  /** Sees to it that the alarm comes at `at` or before; cheap when it does already. */
  by(at: number): void {
    // One whose time has passed may have been lost.
    if (this.#at !== null && this.#at <= at && this.#at >= this.#now()) return
    this.#set(at)
  }

  /** Called first on waking: whatever fails after this, the next alarm is set already. */
  woke(): void {
    this.#set(this.#now() + SAFETY_MS)
  }

  /** Sets the alarm to what is due next; none when nothing is. */
  rearm(): void {
    this.#rearmed()
    const next = this.next()
    if (next !== this.#at) this.#set(next)
  }

  /** The earliest of all that is due, never in the past. */
  next(): number | null {
    const now = this.#now()
    const times = this.#sources.map((due) => due(now)).filter((at) => at !== null)
    return times.length > 0 ? Math.max(now, Math.min(...times)) : null
  }

  #set(at: number | null): void {
    if (!this.#laid()) return
    this.#at = at
    // Not awaited: the write is part of the current transaction, and a failure of the storage resets the object.
    void (at === null ? this.#storage.deleteAlarm() : this.#storage.setAlarm(at))
  }
}
