import { messageOf } from '../base/error-text.ts'
import { logError } from '../base/warn.ts'

/**
 * Restarts the object from disk after a failure, since memory and disk may differ. Syncs first: an
 * abort discards pending writes, among them the record of the failure.
 */
export function dropObject(context: DurableObjectState, scope: string, error: unknown): void {
  const reason = messageOf(error)
  logError({ message: 'a unit of work failed; the object restarts', scope, error: reason })
  const drop = () => context.abort(`the scope restarts after a failure: ${reason}`)
  // A storage failure resets the object by itself.
  void context.storage.sync().then(drop, drop)
}
