import { or, sql, type Column, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { overlaps, prefixOf } from '../contract/scope-pattern.ts'
import { skills, skillScopes, skillVersions } from './schema.ts'

/** Sorts behind every character that a pattern may have. */
const LAST = '\u007F'

/**
 * Which of the owners' patterns match a scope, or overlap with a key's patterns. The index narrows them by
 * their prefixes; GLOB could not judge two patterns, nor one of more than 50 bytes.
 */
export async function ownersPatterns(db: D1Database, wanted: readonly string[]): Promise<string[]> {
  const rows = await drizzle(db)
    .selectDistinct({ pattern: skillScopes.pattern })
    .from(skillScopes)
    .where(or(...wanted.map(prefixCondition)))
  return rows.map(({ pattern }) => pattern).filter((pattern) => wanted.some((one) => overlaps(one, pattern)))
}

/** Holds of the skills that belong to owners with one of these patterns; for a query that joins `skills`. */
export const ownedWithin = (patterns: readonly string[]): SQL =>
  sql`${skills.id} IN (SELECT skill_id FROM skill_scopes WHERE pattern IN (SELECT value FROM json_each(${JSON.stringify(patterns)})))`

/** The owners' patterns that a key's scopes overlap with; null where the key may read everything. */
export const patternsSeenBy = async (db: D1Database, scopes: readonly string[]): Promise<string[] | null> =>
  scopes.includes('*') ? null : ownersPatterns(db, scopes)

/** Of the versions that may be read by those patterns; `sharing` is the version's column. */
export const readable = (patterns: readonly string[] | null, sharing: Column | SQL = skillVersions.sharing): SQL =>
  patterns === null ? sql`true` : sql`(${ownedWithin(patterns)} OR ${sharing} = 'org')`

/** Of the versions that a key may read. */
export async function readableBy(db: D1Database, scopes: readonly string[]): Promise<SQL> {
  return readable(await patternsSeenBy(db, scopes))
}

/** Of the versions that a scope may show and run. */
export async function runnableIn(db: D1Database, scope: string): Promise<SQL> {
  return ownedWithin(await ownersPatterns(db, [scope]))
}

/** The rows of a skill that is there, whoever inserted it. The columns in the schema's order. */
export const insertPatterns = (db: D1Database, skill_id: string) =>
  drizzle(db)
    .insert(skillScopes)
    .select(
      sql`SELECT skills.id, value, substr(value, 1, instr(value || '*', '*') - 1) FROM skills, json_each(skills.scopes)
        WHERE skills.id = ${skill_id}`,
    )
    .onConflictDoNothing()

/** Patterns whose prefix begins as this one's does, or the other way round, where this one goes on freely. */
function prefixCondition(wanted: string): SQL | undefined {
  const prefix = prefixOf(wanted)
  const shorter = Array.from({ length: prefix.length + 1 }, (_, length) => prefix.slice(0, length))
  const begins = sql`${skillScopes.prefix} IN (SELECT value FROM json_each(${JSON.stringify(shorter)}))`
  if (!wanted.includes('*')) return begins
  return or(begins, sql`(${skillScopes.prefix} >= ${prefix} AND ${skillScopes.prefix} < ${prefix + LAST})`)
}
