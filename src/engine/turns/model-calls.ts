import type { ModelReport } from '../../store/replicate.ts'
import type { Database } from '../storage/database.ts'
import type { Unit } from '../storage/unit.ts'

/** The last results of the scope's model calls. Times in ms. `failures`: since the answer. */
type Calls = { answered_at: number | null; failing_since: number | null; failures: number; error: string | null }

const KEY = 'model_calls'
const NONE: Calls = { answered_at: null, failing_since: null, failures: 0, error: null }
/** Answers in a row are written this often: each write costs, and people read minutes. */
const ANSWER_MS = 10_000

/** Health is judged by what real calls did: a request made only to probe a model costs money. */
export class ModelCalls {
  #calls: Calls

  constructor(database: Pick<Database, 'read'>) {
    this.#calls = database.read(KEY, NONE)
  }

  answered(unit: Unit): void {
    const { answered_at, failures } = this.#calls
    if (failures === 0 && answered_at !== null && Math.abs(unit.now - answered_at) < ANSWER_MS) return
    this.#keep(unit, { ...NONE, answered_at: unit.now })
  }

  failed(unit: Unit, error: string): void {
    const { answered_at, failing_since, failures } = this.#calls
    this.#keep(unit, { answered_at, failing_since: failing_since ?? unit.now, failures: failures + 1, error })
  }

  #keep(unit: Unit, calls: Calls): void {
    unit.write(KEY, calls)
    this.#calls = calls
  }
}

/** For the scope's row in D1. `ask_at`: when it asks again, if events wait for that. */
export function modelReport(database: Pick<Database, 'read'>, ask_at: number | null): ModelReport {
  const { answered_at, failing_since, failures, error } = database.read(KEY, NONE)
  return {
    model_answered_at: answered_at,
    model_failing_since: failing_since,
    model_failures: failures,
    model_error: error,
    model_ask_at: ask_at,
  }
}
