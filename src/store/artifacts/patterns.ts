import { or, sql, type Column, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { ArtifactKind } from '../../contract/artifact.ts'
import { overlaps, prefixOf } from '../../contract/settings/scope-pattern.ts'
import { artifactPatterns, artifacts, artifactVersions } from './tables.ts'

/** Sorts after every character of a pattern. */
const LAST = '\u007F'

/**
 * The owners' patterns that match a scope or overlap with a key's. An index narrows them by prefix,
 * since GLOB cannot compare two patterns.
 */
export async function ownersPatterns(db: D1Database, wanted: readonly string[]): Promise<string[]> {
  const rows = await drizzle(db)
    .selectDistinct({ pattern: artifactPatterns.pattern })
    .from(artifactPatterns)
    .where(or(...wanted.map(prefixCondition)))
  return rows.map(({ pattern }) => pattern).filter((pattern) => wanted.some((one) => overlaps(one, pattern)))
}

export const isPattern = (patterns: readonly string[]): SQL =>
  sql`${artifactPatterns.pattern} IN (SELECT value FROM json_each(${JSON.stringify(patterns)}))`

/** True for artifacts of owners with one of these patterns, in a query that joins `artifacts`. */
const ownedWithin = (patterns: readonly string[]): SQL =>
  sql`(${artifacts.kind}, ${artifacts.id}) IN (SELECT kind, id FROM ${artifactPatterns} WHERE ${isPattern(patterns)})`

/** The owners' patterns that a key's scopes overlap with; null if the key may read everything. */
export const patternsSeenBy = async (db: D1Database, scopes: readonly string[]): Promise<string[] | null> =>
  scopes.includes('*') ? null : ownersPatterns(db, scopes)

/** True for versions readable with those patterns; `sharing` is the version's column. */
export const readable = (patterns: readonly string[] | null, sharing: Column | SQL = artifactVersions.sharing): SQL =>
  patterns === null ? sql`true` : sql`(${sharing} = 'org' OR ${ownedWithin(patterns)})`

export async function readableBy(db: D1Database, scopes: readonly string[]): Promise<SQL> {
  return readable(await patternsSeenBy(db, scopes))
}

export async function runnableIn(db: D1Database, scope: string): Promise<SQL> {
  return ownedWithin(await ownersPatterns(db, [scope]))
}

/** Inserts the patterns of an artifact in the table. Columns in the schema's order. */
export const insertPatterns = (db: D1Database, kind: ArtifactKind, id: string) =>
  drizzle(db)
    .insert(artifactPatterns)
    .select(
      sql`SELECT artifacts.kind, artifacts.id, value, substr(value, 1, instr(value || '*', '*') - 1) FROM artifacts, json_each(artifacts.scopes)
        WHERE artifacts.kind = ${kind} AND artifacts.id = ${id}`,
    )
    .onConflictDoNothing()

/** Patterns whose prefix extends this one's, or that are extended by it. */
function prefixCondition(wanted: string): SQL | undefined {
  const prefix = prefixOf(wanted)
  const shorter = Array.from({ length: prefix.length + 1 }, (_, length) => prefix.slice(0, length))
  const begins = sql`${artifactPatterns.prefix} IN (SELECT value FROM json_each(${JSON.stringify(shorter)}))`
  if (!wanted.includes('*')) return begins
  return or(begins, sql`(${artifactPatterns.prefix} >= ${prefix} AND ${artifactPatterns.prefix} < ${prefix + LAST})`)
}
