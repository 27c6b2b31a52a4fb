import { causesOf, isPlatformFault, modelFaultOf, faultText, type ModelFault } from '../base/faults.ts'
import { findModelRefused } from '../models/model-errors.ts'
import { byteLength, fitsBytes } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { messageOf, stackOf } from '../base/error-text.ts'
import type { TurnEnd } from '../contract/log-entry.ts'
import type { FailedCall } from '../contract/event-record.ts'
import type { Settings } from '../contract/settings/settings.ts'
import { TooLate } from '../base/deadline.ts'

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

/** Maps an error to an ending by its class; `model` is the turn's latest news of the provider. */
export function endingOfError(error: unknown, { now, model }: { now: number; model: ModelWitness }): TurnEnding {
  const refusal = findModelRefused(error)
  if (refusal?.reason === 'outage') return { status: 'waiting', result: null, error: refusal.detail }
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
