import { jsonHash } from '../../../base/hash.ts'
import type { Database, Unit } from '../../../kernel/unit.ts'

const KEY = 'allowed_calls'
/** Approved calls that were not made yet; the oldest are forgotten. */
const MOST = 100

/** A model that makes a call again may write its arguments in another order: their hash is one. */
type Call = { tool: string; arguments_hash: string }

/** Calls that persons have approved, and that callers may make once. */
export class Allowed {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  add(unit: Unit, tool: string, input: unknown): void {
    unit.write(KEY, [...this.#calls(), { tool, arguments_hash: jsonHash(input) }].slice(-MOST))
  }

  /** True once for each approval of this call. */
  take(unit: Unit, tool: string, input: unknown): boolean {
    const calls = this.#calls()
    if (calls.length === 0) return false
    const arguments_hash = jsonHash(input)
    const at = calls.findIndex((one) => one.tool === tool && one.arguments_hash === arguments_hash)
    if (at < 0) return false
    unit.write(KEY, calls.toSpliced(at, 1))
    return true
  }

  #calls(): readonly Call[] {
    return this.#database.read<readonly Call[]>(KEY, [])
  }
}
