import type { Cause } from '../../contract/log-entry.ts'
import type { Work } from '../guard.ts'

/**
 * What is counted where an effect takes the object down: its run or its reflex's action, else
 * whatever is in flight.
 */
export function effectWork({ turn_id, cause }: { turn_id: string | null; cause: Cause }): Work | undefined {
  if (turn_id?.startsWith('run:')) return { kind: 'run', id: turn_id.slice('run:'.length) }
  return turn_id !== null && 'by' in cause && cause.by.startsWith('reflex:') ? { kind: 'action', id: turn_id } : undefined
}
