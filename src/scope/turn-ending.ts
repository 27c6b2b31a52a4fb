import { messageOf } from '../protocol/message-of.ts'
import { findModelRefused } from '../models/model-refused.ts'
import { byteLength, fitsBytes } from '../protocol/byte-length.ts'
import { limits } from '../protocol/limits.ts'
import { TooLate } from './deadline.ts'
import { isPlatformFault } from './platform-fault.ts'
import type { Ending } from './turn.ts'

/** A trigger's result must be JSON, for the log and for replay: what is not is the trigger's failure, not a silent loss. */
export function endingOf(result: unknown, scratch: unknown): Ending {
  try {
    // What it remembers must be JSON, too; found out here, where it is the trigger's failure and not the scope's.
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
      return failed(`the trigger returned ${byteLength(text)} bytes as JSON; the most is ${limits.result_bytes}`)
    return { status: 'result', result: JSON.parse(text), error: null }
  } catch (error) {
    return failed(`the trigger returned what cannot be serialised as JSON: ${messageOf(error)}`)
  }
}

export function endingOfError(error: unknown): Ending {
  const refusal = findModelRefused(error)
  if (refusal) return { status: 'refused', result: null, error: refusal.detail, until: refusal.until }
  if (error instanceof TooLate) return { status: 'timeout', result: null, error: error.message }
  if (isPlatformFault(error)) return { status: 'interrupted', result: null, error: messageOf(error) }
  return failed(messageOf(error))
}

const failed = (error: string): Ending => ({ status: 'failed', result: null, error })
