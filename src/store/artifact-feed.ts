import { asc, eq, max, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { Artifact, ArtifactKind } from '../contract/artifact.ts'
import { isPattern, ownersPatterns } from './artifact-patterns.ts'
import { selectReferenced, type Reference } from './artifacts.ts'
import { artifactPatterns, artifactVersions, reflexUses } from './schema.ts'

/** A manifest has up to 128 kB, more with its defaults filled in. */
const PAGE = 50

/** A version that became active, or ceased to be: then `content` is null. */
export type Change = { kind: ArtifactKind; id: string; version: string; hash: string; content: string | null }
export type Feed = {
  /** Versions that reach the scope by their owner, in the order of their changes. */
  changes: Change[]
  /** All versions that the references stand for; null if none of them changed. */
  referenced: Artifact[] | null
  /** A copy that has applied these is at this revision. `more`: ask again from there. */
  revision: number
  more: boolean
  /** The registry is older than the copy, as after a restored backup: empty the copy first. */
  restart?: true
}
export type FeedQuery = {
  scope: string
  since_revision: number
  /** The reflexes of the scope's chain. `changed`: it has changed since that revision. */
  references?: { list: readonly Reference[]; changed: boolean }
  limit?: number
}

/**
 * The artifacts that concern a scope and changed since a revision; since 0, all of them. A version
 * that changes while pages are read comes again at the end. Where nothing changed, this reads one
 * row; otherwise only what belongs to owners that cover the scope, or is referred to.
 */
export async function readFeed(
  db: D1Database,
  { scope, since_revision, references = { list: [], changed: false }, limit = PAGE }: FeedQuery,
): Promise<Feed> {
  const [last] = await newest(db)
  const latest = last?.revision ?? 0
  if (latest === since_revision && !references.changed) return { changes: [], referenced: null, revision: latest, more: false }
  const restart = latest < since_revision
  const since = restart ? 0 : since_revision
  const patterns = await ownersPatterns(db, [scope])
  const all = restart || references.changed
  const moved = all ? sql`true` : sql`${anyChanged(references.list, since)}`
  const [[now], [flag], referenced, rows] = await drizzle(db).batch([
    newest(db),
    drizzle(db)
      .select({ moved: sql<number>`${moved}` })
      .from(sql`(SELECT 1)`),
    selectReferenced(db, 'reflex', references.list).where(moved),
    changedOf(db, { patterns, since, limit: limit + 1 }),
  ])
  const page = rows.slice(0, limit)
  const more = rows.length > limit
  return {
    changes: page.map(({ revision: _revision, ...change }) => change),
    referenced: flag?.moved ? referenced : null,
    revision: more ? (page.at(-1)?.revision ?? since) : (now?.revision ?? 0),
    more,
    ...(restart ? { restart } : {}),
  }
}

const newest = (db: D1Database) =>
  drizzle(db)
    .select({ revision: max(artifactVersions.revision) })
    .from(artifactVersions)

const anyChanged = (references: readonly Reference[], since: number): SQL => sql`EXISTS (
  SELECT 1 FROM json_each(${JSON.stringify(references.map(({ id }) => id))}) AS wanted
  CROSS JOIN artifact_versions AS versions ON versions.kind = 'reflex' AND versions.id = wanted.value AND versions.revision > ${since})`

/** Driven by the artifacts of these owners, and reads the content of one page only: CROSS JOIN keeps the order. */
function changedOf(db: D1Database, { patterns, since, limit }: { patterns: readonly string[]; since: number; limit: number }) {
  const { kind, id, version, hash, revision, state, content } = artifactVersions
  const page = sql`SELECT versions.kind, versions.id, versions.version
    FROM (SELECT DISTINCT kind, id FROM ${artifactPatterns} WHERE ${isPattern(patterns)}) AS mine
    CROSS JOIN artifact_versions AS versions ON versions.kind = mine.kind AND versions.id = mine.id AND versions.revision > ${since}
    ORDER BY versions.revision LIMIT ${limit}`
  return drizzle(db)
    .select({ kind, id, version, hash, content: sql<string | null>`CASE ${state} WHEN 'active' THEN ${content} END`, revision })
    .from(sql`(${page}) AS page`)
    .crossJoin(artifactVersions)
    .where(sql`${eq(kind, sql`page.kind`)} AND ${eq(id, sql`page.id`)} AND ${eq(version, sql`page.version`)}`)
    .orderBy(asc(revision))
}

/** Records the reflexes in a scope's chain, in place of those recorded before. */
export async function setUses(db: D1Database, scope: string, ids: readonly string[]): Promise<void> {
  const text = JSON.stringify(ids)
  await db.batch([
    db.prepare('DELETE FROM reflex_uses WHERE scope = ?1 AND reflex_id NOT IN (SELECT value FROM json_each(?2))').bind(scope, text),
    db
      .prepare('INSERT INTO reflex_uses (reflex_id, scope) SELECT value, ?1 FROM json_each(?2) WHERE true ON CONFLICT DO NOTHING')
      .bind(scope, text),
  ])
}

/** By name, the first `limit` of them. */
export async function scopesUsing(db: D1Database, id: string, limit: number): Promise<string[]> {
  const rows = await drizzle(db)
    .select({ scope: reflexUses.scope })
    .from(reflexUses)
    .where(eq(reflexUses.reflex_id, id))
    .orderBy(asc(reflexUses.scope))
    .limit(limit)
  return rows.map(({ scope }) => scope)
}
