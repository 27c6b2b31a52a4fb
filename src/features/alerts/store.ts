import { and, eq } from 'drizzle-orm'
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { jsonChunks, type Json } from '../../base/json.ts'
import type { Alert, AlertName } from '../../contract/alert.ts'
import { areCovered } from '../../store/access/keys.ts'
import { between, forgetByAge, listByAge, type AgeQuery, type PageOf } from '../../store/page-by-bytes.ts'

/** The alerts that the sweep raised. */
export const alerts = sqliteTable(
  'alerts',
  {
    id: text().primaryKey(),
    at: integer().notNull(),
    name: text().$type<AlertName>().notNull(),
    summary: text().notNull(),
    details: text({ mode: 'json' }).$type<Record<string, Json>>().notNull(),
    /** The scopes that a reader must cover. */
    reach: text({ mode: 'json' }).$type<readonly string[]>().notNull(),
  },
  (table) => [index('alerts_age').on(table.at, table.id)],
)

/** An alert that names some of its scopes is about others, too. */
const reachOf = ({ details: { scopes, more } }: Alert): Json => (Array.isArray(scopes) && !more ? scopes : ['*'])

/** Keeps those that were not kept before, and returns their ids. */
export async function keepAlerts(db: D1Database, found: readonly Alert[], at: number): Promise<string[]> {
  const insert = `INSERT INTO alerts (id, at, name, summary, details, reach)
    SELECT value->>'id', ?2, value->>'name', value->>'summary', value->'details', value->'reach' FROM json_each(?1) WHERE true
    ON CONFLICT (id) DO NOTHING RETURNING id`
  const chunks = jsonChunks(found.map((alert) => JSON.stringify({ ...alert, reach: reachOf(alert) })))
  const kept = await Promise.all(chunks.map((chunk) => db.prepare(insert).bind(chunk, at).all<{ id: string }>()))
  return kept.flatMap(({ results }) => results.map(({ id }) => id))
}

type AlertRow = typeof alerts.$inferSelect
type AlertQuery = AgeQuery & { name?: AlertName | undefined; since?: string | undefined; until?: string | undefined }

/** The alerts whose whole reach `patterns` cover. */
export async function listAlerts(db: D1Database, { name, since, until, ...page }: AlertQuery): Promise<PageOf<AlertRow>> {
  const condition = and(
    areCovered(alerts.reach, page.patterns),
    name === undefined ? undefined : eq(alerts.name, name),
    between(alerts.at, { since, until }),
  )
  const from = { from: alerts, at: alerts.at, long: [alerts.summary, alerts.details, alerts.reach] }
  return listByAge(db, from, { ...page, patterns: ['*'] }, condition)
}

export const forgetAlerts = (db: D1Database, before: number, limit: number): Promise<number> =>
  forgetByAge(db, { from: alerts, at: alerts.at }, before, limit)
