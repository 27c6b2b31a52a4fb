/** So many messages a second, and as many at once: a bucket that fills with time. */
export class MessageRate {
  readonly #per_second: number
  #left: number
  #at: number

  constructor(per_second: number, now: number) {
    this.#per_second = per_second
    this.#left = per_second
    this.#at = now
  }

  /** Whether one more may be taken. */
  take(now: number): boolean {
    const filled = this.#left + (Math.max(0, now - this.#at) * this.#per_second) / 1000
    this.#left = Math.min(this.#per_second, filled)
    this.#at = now
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}
