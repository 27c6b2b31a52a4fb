import { eq, isNotNull, isNull } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { listByAge, type AgeQuery, type PageOf } from '../../../src/store/page-by-bytes.ts'
import { incidents } from './tables.ts'

export type Incident = typeof incidents.$inferSelect
export const incidentStates = ['open', 'closed'] as const

type IncidentQuery = AgeQuery & { state?: (typeof incidentStates)[number] | undefined }

export function listIncidents(db: D1Database, { state, ...query }: IncidentQuery): Promise<PageOf<Incident>> {
  const list = { from: incidents, at: incidents.opened_at, long: [incidents.title, incidents.details, incidents.evidence] }
  return listByAge(db, list, query, state && (state === 'open' ? isNull(incidents.closed_at) : isNotNull(incidents.closed_at)))
}

/** Finds an incident by its id, which is unique across scopes. */
export async function findIncident(db: D1Database, id: string): Promise<Incident | null> {
  const row = await drizzle(db).select().from(incidents).where(eq(incidents.id, id)).get()
  return row ?? null
}

/** Deletes at most `limit` closed incidents older than `before`, and returns their number. */
export async function forgetIncidents(db: D1Database, before: number, limit: number): Promise<number> {
  const { meta } = await db
    .prepare('DELETE FROM incidents WHERE (scope, id) IN (SELECT scope, id FROM incidents WHERE closed_at < ?1 LIMIT ?2)')
    .bind(before, limit)
    .run()
  return meta.changes
}
