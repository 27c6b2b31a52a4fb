import type { Counters as Counts } from '../contract/scope-api.ts'
import type { Database, StateChange } from './database.ts'

export const ZERO: Counts = {
  accepted: 0,
  duplicates: 0,
  completed: 0,
  ignored: 0,
  dead_lettered: 0,
  cancelled: 0,
  retried: 0,
  turns: 0,
  turns_failed: 0,
  reflex_actions: 0,
  effects: 0,
  effects_failed: 0,
  model_calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cost_usd: 0,
}

/** What the scope has done since it exists. Kept once per unit of work, in its transaction. */
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

  /** What is to be kept since it was last asked. */
  changes(): StateChange[] {
    if (!this.#changed) return []
    this.#changed = false
    return [['counters', this.#counts]]
  }
}
