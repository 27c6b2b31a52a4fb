/** What Cloudflare's runtime says when it takes an object or a connection away. Whole messages, so that an application's look-alikes do not match. */
const FAULTS = [
  /^(?:Error: )?Durable Object reset because its code was updated\.?$/,
  /^(?:Error: )?This script has been upgraded\. Please send a new request to connect to the new version\.?$/,
  /^(?:Error: )?Network connection lost\.?$/,
  /^(?:Error: )?The Durable Object's code has been updated, this version can no longer access storage\.?$/,
]

/** Whether a failure is the platform's and not the work's: it burns no attempt. Looks through the chain of causes. */
export function isPlatformFault(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > 8) return false
  return FAULTS.some((fault) => fault.test(error.message)) || isPlatformFault(error.cause, depth + 1)
}
