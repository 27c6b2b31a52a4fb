/** What D1 says when it is away, and not that the query is wrong. */
const AWAY = /^D1_ERROR: .*(?:network connection lost|overloaded|exceeded timeout|timed out|reset|internal error)/i
const LOST = /^(?:Error: )?(?:Network connection lost|Durable Object reset because its code was updated)\.?$/

/** Whether trying again may help: the platform says so on the errors of an object's stub. Looks through the chain of causes. */
export function isTransient(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > 8) return false
  const told = ('retryable' in error && error.retryable === true) || ('overloaded' in error && error.overloaded === true)
  return told || AWAY.test(error.message) || LOST.test(error.message) || isTransient(error.cause, depth + 1)
}
