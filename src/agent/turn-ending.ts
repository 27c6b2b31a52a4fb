import { causesOf, isPlatformFault, modelFaultOf, faultText, type ModelFault } from '../base/faults.ts'
import { findModelRefused } from '../models/model-errors.ts'
import { byteLength, fitsBytes } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { messageOf, stackOf } from '../base/error-text.ts'
import type { TurnEnd } from '../contract/log-entry.ts'
import type { FailedCall, FailedRun } from '../contract/event-record.ts'
import type { Settings } from '../contract/settings/settings.ts'
import { TooLate } from '../base/deadline.ts'
import type { Agent, AgentDeps } from './define-agent.ts'
import type { DecisionContext } from '../core/decision-context.ts'
import { argumentsHash } from '../tools/define-tool.ts'

type CallingTurn = { signal: AbortSignal; failed_calls: FailedCall[] }

/** Maximum number of failed calls in a turn's outcome. The log has all of them. */
const MOST_NAMED = 20
const LONGEST_ERROR = 500

/** The failed tool calls of a turn. A call is listed until the same call succeeds. */
export class FailedCalls {
  readonly #turn: CallingTurn
  readonly #hide: (text: string) => string
  readonly #places = new Map<string, CallingTurn['failed_calls'][number]>()

  constructor(turn: CallingTurn, hide: (text: string) => string) {
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

/** The provider's latest answer or fault. */
export type ModelWitness = { answered: boolean; fault: ModelFault | null }

export type TurnEnding = {
  status: Exclude<TurnEnd, 'cancelled' | 'lost'>
  result: unknown
  error: string | null
  stack?: string | null
  /** Only for `refused`: time of the next try; null waits for a change of the settings. */
  until?: number | null
  /** The provider's fault, if it ended the trigger. */
  fault?: ModelFault | null
}

/** A trigger's result must be JSON, for the log and for replay; otherwise the trigger failed. */
export function endingOf(result: unknown, scratch: unknown): TurnEnding {
  try {
    // Check the scratch here, where a failure is the trigger's and not the scope's.
    if (!fitsBytes(JSON.stringify(scratch) ?? '', limits.result_bytes))
      return failed(`the scratch takes more than ${limits.result_bytes} bytes as JSON`)
  } catch (error) {
    return failed(`the scratch cannot be serialised as JSON: ${messageOf(error)}`)
  }
  if (result === null || result === undefined) return { status: 'none', result: null, error: null }
  try {
    const text = JSON.stringify(result) as string | undefined
    if (text === undefined) return failed(`the trigger returned a ${typeof result}, which cannot be serialised as JSON`)
    if (!fitsBytes(text, limits.result_bytes))
      return failed(`the trigger returned ${byteLength(text)} bytes as JSON; the limit is ${limits.result_bytes}`)
    return { status: 'result', result: JSON.parse(text), error: null }
  } catch (error) {
    return failed(`the trigger returned a value that cannot be serialised as JSON: ${messageOf(error)}`)
  }
}

/** Fails a turn whose tool calls failed, if `on_tool_error` says so. */
export function endingWithCalls(
  ending: TurnEnding,
  failed_calls: readonly FailedCall[],
  on_tool_error: Settings['on_tool_error'],
): TurnEnding {
  const [first, ...others] = failed_calls
  if (!first || on_tool_error === 'continue' || (ending.status !== 'result' && ending.status !== 'none')) return ending
  const more = others.length > 0 ? ` (and ${others.length} more failed calls)` : ''
  return failed(`the tool ${first.tool} failed, and on_tool_error is fail: ${first.error}${more}`)
}

/** The status of a provider for a budget that is spent. */
const SPENT = 429

/** True if the turn's own budget refused the call, and not the provider. */
export const isSpent = ({ fault, status }: ModelFault): boolean => fault === 'refused' && status === SPENT

/** Maps an error to an ending by its class; `model` is the turn's latest news of the provider. */
export function endingOfError(error: unknown, { now, model }: { now: number; model: ModelWitness }): TurnEnding {
  const refusal = findModelRefused(error)
  if (refusal?.reason === 'outage') return { status: 'waiting', result: null, error: refusal.detail }
  if (refusal?.final) {
    const fault = { fault: 'refused' as const, status: SPENT, retry_after_ms: null, detail: refusal.detail }
    return { ...failed(refusal.detail), fault }
  }
  if (refusal) return { status: 'refused', result: null, error: refusal.detail, until: refusal.until }
  if (error instanceof TooLate) return { status: 'timeout', result: null, error: error.message }
  const fault = modelFaultOf(error, { now }) ?? (isNoOutput(error) ? model.fault : null)
  if (fault) return endingOfFault(fault, error)
  if (isPlatformFault(error)) return { status: 'interrupted', result: null, error: messageOf(error) }
  return { ...failed(messageOf(error)), stack: stackOf(error) }
}

function endingOfFault(fault: ModelFault, error: unknown): TurnEnding {
  const ending = { result: null, error: faultText(fault), fault }
  return fault.fault === 'unavailable' ? { status: 'waiting', ...ending } : { status: 'failed', ...ending, stack: stackOf(error) }
}

/** The AI SDK's stream promises hide why the stream broke off. */
const isNoOutput = (error: unknown): boolean => Array.from(causesOf(error)).some(({ name }) => name === 'AI_NoOutputGeneratedError')

const failed = (error: string): TurnEnding => ({ status: 'failed', result: null, error })

/** `running`: unfinished calls of `deps.call`, with their tools. */
type Turn = { seen: { context: DecisionContext }; running: ReadonlyMap<Promise<unknown>, string>; warnings: string[] }

const MOST_WARNINGS = 20

/**
 * Returns a trigger's result after all its calls have ended, since the turn's end would cut off an
 * unawaited call as `unknown`. Probable mistakes become warnings in the log.
 */
export async function resultOf(trigger: NonNullable<Agent['trigger']>, turn: Turn, deps: AgentDeps): Promise<unknown> {
  const result = await trigger(turn.seen.context, deps)
  if (result === undefined)
    warn(turn, 'the trigger returned undefined, which counts as null: return a result, or null where there was nothing to do')
  while (turn.running.size > 0) {
    const calls = Array.from(turn.running)
    const ends = await Promise.allSettled(calls.map(([running]) => running))
    for (const [index, [, tool]] of calls.entries()) {
      const end = ends[index]
      const how = end?.status === 'rejected' ? `it failed: ${messageOf(end.reason)}` : 'it ended well'
      warn(turn, `deps.call("${tool}") was still running when the trigger returned; ${how}. Await each call`)
    }
  }
  return result
}

function warn({ warnings }: Turn, warning: string): void {
  if (warnings.length < MOST_WARNINGS && !warnings.includes(warning)) warnings.push(warning)
}
