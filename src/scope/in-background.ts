import { logError } from '../base/warn.ts'

/**
 * For work that nobody waits for. It fails where a unit of work failed: the object is about to be
 * dropped then, and the next one goes on from what is on disk.
 */
export function inBackground(work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    logError({ message: 'work in the background failed', error })
  })
}
