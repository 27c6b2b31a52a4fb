import { messageOf } from '../base/error-text.ts'
import { logError } from '../base/warn.ts'

/**
 * Memory and disk may differ: the next request builds the object anew from what is on disk. What was
 * written before the failure, and that there was one, is on disk first: an abort takes back what
 * still waits for that.
 */
export function dropObject(context: DurableObjectState, scope: string, error: unknown): void {
  const reason = messageOf(error)
  logError({ message: 'a unit of work failed, the object starts anew', scope, error: reason })
  const drop = () => context.abort(`the scope starts anew after a failure: ${reason}`)
  // A storage that fails resets the object by itself.
  void context.storage.sync().then(drop, drop)
}
