import { and, eq, or, sql, type Column, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { ArtifactKind } from '../../contract/artifact.ts'
import { overlaps, prefixOf } from '../../contract/principal.ts'
import { artifactPatterns, artifacts, artifactVersions, entitlements } from './tables.ts'

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
    .where(or(...wanted.map((one) => prefixCondition(one))))
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

/** The owners' patterns, and the patterns of licences, by which a reader sees versions. */
type Sight = { owners: readonly string[]; licensed: readonly string[] }

/** Null if the reader sees everything. */
export async function sightOf(db: D1Database, scopes: readonly string[]): Promise<Sight | null> {
  if (scopes.includes('*')) return null
  const [owners, licensed] = await Promise.all([ownersPatterns(db, scopes), licensedPatterns(db, scopes)])
  return { owners, licensed }
}

/** The patterns of licences in use that overlap with a key's. */
async function licensedPatterns(db: D1Database, wanted: readonly string[]): Promise<string[]> {
  const rows = await drizzle(db)
    .selectDistinct({ pattern: entitlements.pattern })
    .from(entitlements)
    .where(and(eq(entitlements.in_use, true), or(...wanted.map((one) => prefixCondition(one, entitlements.prefix)))))
  return rows.map(({ pattern }) => pattern).filter((pattern) => wanted.some((one) => overlaps(one, pattern)))
}

type Columns = { sharing: Column | SQL; version: Column | SQL }

/** True for versions in sight: published, of such an owner, or licensed. */
export const readable = (sight: Sight | null, { sharing, version }: Columns = artifactVersions): SQL =>
  sight === null
    ? sql`true`
    : sql`(${sharing} = 'org' OR ${ownedWithin(sight.owners)} OR (${artifacts.kind}, ${artifacts.id}, ${version}) IN (
        SELECT kind, id, version FROM ${entitlements} WHERE in_use = 1
          AND pattern IN (SELECT value FROM json_each(${JSON.stringify(sight.licensed)}))))`

export async function readableBy(db: D1Database, scopes: readonly string[]): Promise<SQL> {
  return readable(await sightOf(db, scopes))
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
function prefixCondition(wanted: string, column: Column = artifactPatterns.prefix): SQL | undefined {
  const prefix = prefixOf(wanted)
  const shorter = Array.from({ length: prefix.length + 1 }, (_, length) => prefix.slice(0, length))
  const begins = sql`${column} IN (SELECT value FROM json_each(${JSON.stringify(shorter)}))`
  if (!wanted.includes('*')) return begins
  return or(begins, sql`(${column} >= ${prefix} AND ${column} < ${prefix + LAST})`)
}
