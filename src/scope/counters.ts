import { counters, type Counters as Counts } from '../contract/scope.ts'
import type { Database, StateChange } from './database.ts'

export const ZERO = Object.fromEntries(Object.keys(counters.shape).map((name) => [name, 0])) as Counts

/** The scope's lifetime counters, stored once per unit, in its transaction. */
export class Counters {
  readonly #counts: Counts
  #changed = false

  constructor(database: Database) {
    this.#counts = { ...ZERO, ...database.read<Partial<Counts>>('counters', {}) }
  }

  get counts(): Counts {
    return { ...this.#counts }
  }

  add(changes: Partial<Counts>): void {
    for (const [name, change] of Object.entries(changes)) {
      this.#counts[name as keyof Counts] += change
      this.#changed ||= change !== 0
    }
  }

  /** Returns and clears the changes that are not stored yet. */
  changes(): StateChange[] {
    if (!this.#changed) return []
    this.#changed = false
    return [['counters', this.#counts]]
  }
}
