import { CutOff } from '../skills/runner/cut-off.ts'
import { NO_ANSWER } from './may-have-happened.ts'

const PASSING = new Set([429, 503])
/** The effect may have happened all the same: only a key makes a repetition safe. */
const UNCLEAR = new Set([408, 500, ...NO_ANSWER])

/** Whether what a tool threw may go better the next time, by what it says itself or by its HTTP status. */
export function isRetryable(error: unknown, { keyed = false }: { keyed?: boolean } = {}): boolean {
  if (typeof error !== 'object' || error === null) return false
  if (error instanceof CutOff) return keyed
  const { isRetryable, retryable, statusCode, status } = error as Record<string, unknown>
  if (typeof isRetryable === 'boolean') return isRetryable
  if (typeof retryable === 'boolean') return retryable
  const code = typeof statusCode === 'number' ? statusCode : status
  return typeof code === 'number' && (PASSING.has(code) || (keyed && UNCLEAR.has(code)))
}
