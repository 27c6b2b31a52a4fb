import { logError } from '../base/warn.ts'

/**
 * Runs work that nobody awaits. It fails only after a failed unit, when the object is about to
 * restart.
 */
export function inBackground(work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    logError({ message: 'work in the background failed', error })
  })
}
