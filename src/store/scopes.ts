import { and, asc, eq, gt, isNotNull, lt, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { AHEAD_MS, iso } from '../base/time.ts'
import type { ScopeStateFilter, ScopeSummary } from '../contract/scope.ts'
import { fireShare } from '../features/statistics/contract/statistics.ts'
import { withinBounds } from './events.ts'
import { scopeTotals, sortStatisticsNow } from '../features/statistics/store/packed.ts'
import { FULL } from './packs/rows.ts'
import { seqAt } from './queued.ts'
import { scopes } from './schema.ts'

const MOST_OVERDUE = 100
/** The conditions of partial indexes, without parameters, or SQLite does not use them. */
export const IS_OPEN = sql`"open" > 0`
export const IS_PARKED = sql`parked > 0`

type Listing = {
  patterns: readonly string[]
  after: string
  limit: number
  search?: string | undefined
  state?: ScopeStateFilter | undefined
}

/** Scopes by name, after `after`, with their totals. `search`: in names of scopes and agents. */
export async function listScopes(db: D1Database, { patterns, after, limit, search, state }: Listing): Promise<ScopeSummary[]> {
  await sortStatisticsNow(db)
  const { scope, agent, open, turn_since, parked, model_ask_at, updated_at } = scopes
  const inStates = { open: IS_OPEN, turn: isNotNull(turn_since), parked: IS_PARKED, model: isNotNull(model_ask_at) }
  const searched = search === undefined ? undefined : sql`instr(lower(${scope} || ' ' || ${agent}), lower(${search})) > 0`
  const rows = await drizzle(db)
    .select({
      scope,
      agent,
      open,
      turn_since,
      parked,
      model_ask_at,
      updated_at,
    })
    .from(scopes)
    .where(and(withinBounds(scopes.scope, patterns), gt(scope, after), searched, state && inStates[state]))
    .orderBy(asc(scope))
    .limit(limit)
  const totals = await scopeTotals(
    db,
    rows.map((row) => row.scope),
  )
  return rows.map(({ updated_at: at, turn_since: since, model_ask_at: ask_at, ...row }) => {
    const { accepted = 0, decided = 0, model_calls = 0, model_cost_usd = 0, unpriced_calls = 0, max_at = 0 } = totals.get(row.scope) ?? {}
    return {
      ...row,
      accepted,
      cost_usd: model_cost_usd,
      unpriced_model_calls: unpriced_calls,
      turn_since: since === null ? null : iso(since),
      asks_model_at: ask_at === null ? null : iso(ask_at),
      fire_share: fireShare(decided, model_calls),
      updated_at: iso(Math.max(at, max_at)),
    }
  })
}

/** Looked at to find the latest ones: without an index, the work must have a bound. */
const MOST_LOOKED_AT = 1000

/** The scopes that were used last, of the first thousand that match. */
export async function latestScopes(db: D1Database, patterns: readonly string[], limit: number): Promise<string[]> {
  const { scope, updated_at } = scopes
  const rows = await drizzle(db)
    .select({ scope, updated_at })
    .from(scopes)
    .where(withinBounds(scopes.scope, patterns))
    .limit(MOST_LOOKED_AT)
  const latest = rows.toSorted((one, other) => other.updated_at - one.updated_at).slice(0, limit)
  return latest.map((row) => row.scope)
}

export async function scopeExists(db: D1Database, scope: string): Promise<boolean> {
  return (await drizzle(db).select({ scope: scopes.scope }).from(scopes).where(eq(scopes.scope, scope)).get()) !== undefined
}

/** Scopes whose alarm is overdue since `before`. */
export async function overdueScopes(db: D1Database, before: number): Promise<string[]> {
  const rows = await drizzle(db)
    .select({ scope: scopes.scope })
    .from(scopes)
    .where(lt(scopes.wake_at, before))
    .orderBy(asc(scopes.wake_at))
    .limit(MOST_OVERDUE)
  return rows.map(({ scope }) => scope)
}

/**
 * Scopes that reported by a clock that was ahead of `now`, and have an alarm that it set. All are
 * read, unless no event is as new.
 */
export async function scopesAhead(db: D1Database, now: number): Promise<string[]> {
  const after = now + AHEAD_MS
  const newer = `SELECT 1 FROM events WHERE seq > CAST(?1 AS INTEGER)
    UNION ALL SELECT 1 FROM packs WHERE id > CAST(?1 AS INTEGER) AND id < ${FULL}
    UNION ALL SELECT 1 FROM packs WHERE id > CAST(?1 AS INTEGER) + ${FULL} LIMIT 1`
  if ((await db.prepare(newer).bind(seqAt(after)).first()) === null) return []
  const rows = await drizzle(db)
    .select({ scope: scopes.scope })
    .from(scopes)
    .where(and(gt(scopes.updated_at, after), isNotNull(scopes.wake_at)))
    .limit(MOST_OVERDUE)
  return rows.map(({ scope }) => scope)
}

/** Scopes that learn by themselves and were started before `before`; notes a start at `now`. */
export async function startLearning(
  db: D1Database,
  { before, now, limit }: { before: number; now: number; limit: number },
): Promise<string[]> {
  const of = (when: string) => `SELECT scope FROM (SELECT scope FROM scopes WHERE learns = 1 AND ${when} ORDER BY learned_at LIMIT ?3)`
  // A clock that was ahead may have noted a start.
  const due = [of('learned_at < ?1'), of(`learned_at > ?2 + ${AHEAD_MS}`)].join(' UNION ALL ')
  const statement = `UPDATE scopes SET learned_at = ?2 WHERE scope IN (SELECT scope FROM (${due}) LIMIT ?3) RETURNING scope`
  const { results } = await db.prepare(statement).bind(before, now, limit).all<{ scope: string }>()
  return results.map(({ scope }) => scope)
}

/** Deletes idle scopes without a report since `before`; their next event lists them again. */
export async function forgetScopes(db: D1Database, before: number, limit: number): Promise<number> {
  const statement = `DELETE FROM scopes WHERE scope IN
    (SELECT scope FROM scopes WHERE updated_at < ?1 AND wake_at IS NULL AND open = 0 LIMIT ?2)`
  return (await db.prepare(statement).bind(before, limit).run()).meta.changes
}

/**
 * Notes the alarm of a scope that was woken by a sweep of `now`. The time of its report is put back
 * only if a clock that was ahead made it: the scope may have reported since the sweep began, and an
 * older report must not replace that one.
 */
export async function setWake(
  db: D1Database,
  { scope, wake_at, now }: { scope: string; wake_at: number | null; now: number },
): Promise<void> {
  const updated_at = sql`CASE WHEN ${scopes.updated_at} > ${now + AHEAD_MS} THEN ${now} ELSE ${scopes.updated_at} END`
  await drizzle(db).update(scopes).set({ wake_at, updated_at }).where(eq(scopes.scope, scope))
}

/** The fields that the settings of these scopes hide, of those that name any. */
export async function redactedFields(db: D1Database, names: readonly string[]): Promise<Map<string, string[]>> {
  if (names.length === 0) return new Map()
  const sql = 'SELECT scope, redact FROM scopes WHERE scope IN (SELECT value FROM json_each(?1)) AND redact IS NOT NULL'
  const { results } = await db.prepare(sql).bind(JSON.stringify(names)).all<{ scope: string; redact: string }>()
  return new Map(results.map((row) => [row.scope, JSON.parse(row.redact) as string[]]))
}
