import type { EventRecord } from '../../contract/event-record.ts'
import type { Env } from '../../env.ts'
import { unavailable } from '../problems/refusals.ts'

/** An event as its scope has it, or else the archive. */
export async function recordIn(env: Env, scope: string, id: string): Promise<EventRecord | null> {
  const stub = env.SCOPE.getByName(scope)
  const record = await stub.event(id)
  if (record) return record
  const archived = await stub.archivedEvent(id)
  if (!archived.ok) throw unavailable(`The event ${id} may be in the archive: ${archived.detail}.`)
  return archived.record
}
