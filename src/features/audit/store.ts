import { and, eq, or } from 'drizzle-orm'
import { index, integer, sqliteTable, text, unique } from 'drizzle-orm/sqlite-core'
import type { Change } from '../../contract/change.ts'
import { areCovered } from '../../store/access/keys.ts'
import { within } from '../../store/events.ts'
import { between, forgetByAge, listByAge, type AgeQuery, type PageOf } from '../../store/page-by-bytes.ts'

/** The changes that people made with their keys. `nth` numbers the actions of a key. */
export const actions = sqliteTable(
  'actions',
  {
    id: text().primaryKey(),
    at: integer().notNull(),
    key_id: text().notNull(),
    nth: integer().notNull(),
    key_name: text().notNull(),
    role: text().notNull(),
    action: text().notNull(),
    method: text().notNull(),
    scope: text(),
    /** The scopes that a reader must cover. */
    reach: text({ mode: 'json' }).$type<readonly string[]>().notNull(),
    target: text(),
    trace_id: text(),
  },
  (table) => [index('actions_age').on(table.at, table.id), unique('actions_key').on(table.key_id, table.nth)],
)

/** Kept of each key: nobody can push out what another key did. */
const MOST_OF_A_KEY = 10_000

/** Gives the action the next number of its key. Repeating it changes nothing. */
export async function insertAction(db: D1Database, { reach, ...action }: Change & { id: string }): Promise<void> {
  const row = { ...action, reach: JSON.stringify(reach) }
  const names = Object.keys(row)
  const insert = `INSERT INTO actions (${names.join(', ')}, nth)
    SELECT ${names.map(() => '?').join(', ')}, 1 + coalesce(max(nth), 0) FROM actions WHERE key_id = ? ON CONFLICT (id) DO NOTHING`
  const bound = `DELETE FROM actions WHERE key_id = ?1 AND nth <= (SELECT max(nth) FROM actions WHERE key_id = ?1) - ?2`
  await db.batch([db.prepare(insert).bind(...Object.values(row), action.key_id), db.prepare(bound).bind(action.key_id, MOST_OF_A_KEY)])
}

type ActionRow = typeof actions.$inferSelect
type ActionQuery = Omit<AgeQuery, 'scope'> & Partial<Record<'scope' | 'key' | 'action' | 'since' | 'until', string | undefined>>

/** The actions whose whole reach `patterns` cover. `scope`: a pattern. */
export async function listActions(db: D1Database, { scope, key, action, since, until, ...page }: ActionQuery): Promise<PageOf<ActionRow>> {
  const { patterns, ...rest } = page
  const condition = and(
    areCovered(actions.reach, patterns),
    scope === undefined ? undefined : within(actions.scope, [scope]),
    key === undefined ? undefined : or(eq(actions.key_id, key), eq(actions.key_name, key)),
    action === undefined ? undefined : eq(actions.action, action),
    between(actions.at, { since, until }),
  )
  const from = { from: actions, at: actions.at, long: [actions.key_name, actions.reach, actions.target] }
  return listByAge(db, from, { ...rest, patterns: ['*'] }, condition)
}

export const forgetActions = (db: D1Database, before: number, limit: number): Promise<number> =>
  forgetByAge(db, { from: actions, at: actions.at }, before, limit)
