import { and, eq, isNotNull, isNull } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { within } from '../../store/events.ts'
import { olderThan, type Place, bytesOf, readPage, type PageOf } from '../../store/page-by-bytes.ts'
import { incidents } from './tables.ts'

export type Incident = typeof incidents.$inferSelect
export const incidentStates = ['open', 'closed'] as const

/** `patterns`: the scopes that the caller may see. `before`: the last row of the previous page. */
export type IncidentQuery = {
  patterns: readonly string[]
  scope?: string | undefined
  state?: (typeof incidentStates)[number] | undefined
  before?: Place | undefined
  limit: number
}

/** Returns a page, newest first. */
export async function listIncidents(db: D1Database, { patterns, scope, state, before, limit }: IncidentQuery): Promise<PageOf<Incident>> {
  const where = and(
    within(incidents.scope, patterns),
    scope === undefined ? undefined : eq(incidents.scope, scope),
    state === undefined ? undefined : state === 'open' ? isNull(incidents.closed_at) : isNotNull(incidents.closed_at),
    olderThan(before, incidents.opened_at, incidents.id),
  )
  const bytes = bytesOf(incidents.title, incidents.details, incidents.evidence)
  return readPage(db, { from: incidents, where, key: incidents.id, at: incidents.opened_at, bytes, limit })
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
