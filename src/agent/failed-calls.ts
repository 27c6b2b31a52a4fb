import { argumentsHash } from '../tools/tool-keys.ts'
import { messageOf } from '../base/error-text.ts'
import type { FailedCall, FailedRun } from '../contract/event-record.ts'

type Turn = { signal: AbortSignal; failed_calls: FailedCall[] }

/** Maximum number of failed calls in a turn's outcome. The log has all of them. */
const MOST_NAMED = 20
const LONGEST_ERROR = 500

/** The failed tool calls of a turn. A call is listed until the same call succeeds. */
export class FailedCalls {
  readonly #turn: Turn
  readonly #hide: (text: string) => string
  readonly #places = new Map<string, Turn['failed_calls'][number]>()

  constructor(turn: Turn, hide: (text: string) => string) {
    this.#turn = turn
    this.#hide = hide
  }

  async watch<Output>({ tool, input }: { tool: string; input: unknown }, run: () => Promise<Output>): Promise<Output> {
    const call = `${tool} ${argumentsHash(input)}`
    try {
      const output = await run()
      this.#succeeded(call)
      return output
    } catch (error) {
      // A stopped turn has no outcome that could list it.
      if (!this.#turn.signal.aborted) this.#failed(call, tool, error)
      throw error
    }
  }

  #succeeded(call: string): void {
    const named = this.#places.get(call)
    if (!named) return
    this.#places.delete(call)
    const { failed_calls } = this.#turn
    failed_calls.splice(failed_calls.indexOf(named), 1)
  }

  #failed(call: string, tool: string, thrown: unknown): void {
    const error = this.#hide(messageOf(thrown)).slice(0, LONGEST_ERROR)
    const named = this.#places.get(call)
    if (named) Object.assign(named, { error, attempts: named.attempts + 1 })
    else if (this.#turn.failed_calls.length < MOST_NAMED) {
      const failed = { tool, error, attempts: 1 }
      this.#places.set(call, failed)
      this.#turn.failed_calls.push(failed)
    }
  }
}

type Ran = { run_id: string | null; skill_id: string; status: string; reason: string | null }

/** Lists a run that did not succeed, once: the same proposal gets the same run. */
export function noteRun(failed_runs: FailedRun[], { run_id, skill_id, status, reason }: Ran): void {
  if (run_id === null || (status !== 'failed' && status !== 'partial_failure' && status !== 'unknown')) return
  if (failed_runs.length === MOST_NAMED || failed_runs.some((noted) => noted.run_id === run_id)) return
  failed_runs.push({ run_id, skill_id, status, error: (reason ?? status).slice(0, LONGEST_ERROR) })
}
