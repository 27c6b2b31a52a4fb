import { asc, eq, max, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { ArtifactChanges, Reference, Subscription } from '../../contract/artifact.ts'
import { isPattern, ownersPatterns } from './patterns.ts'
import { selectReferenced, wholeVersion } from './artifacts.ts'
import { artifactPatterns, artifacts, artifactVersions, reflexUses } from './tables.ts'

/** A manifest has up to 128 kB, more with defaults. */
const PAGE = 50

/**
 * The artifacts of a subscription that changed since a revision; all of them since 0. An unchanged
 * feed costs one row.
 */
export async function readFeed(db: D1Database, of: Subscription, since_revision: number, limit = PAGE): Promise<ArtifactChanges> {
  const latest = revisionIn(await newest(db))
  if (latest === since_revision) return { changes: [], revision: latest, more: false }
  const restart = latest < since_revision
  const since = restart ? 0 : since_revision
  const page = 'references' in of ? await referenced(db, of, since) : await owned(db, of, { since, limit })
  return restart ? { ...page, restart } : page
}

/** All versions that the references stand for, if any of them changed. */
async function referenced(
  db: D1Database,
  { kind, references }: Extract<Subscription, { references: unknown }>,
  since: number,
): Promise<ArtifactChanges> {
  const changed = since === 0 ? sql`true` : anyChanged(references, since)
  const [now, [flag], rows] = await drizzle(db).batch([
    newest(db),
    drizzle(db)
      .select({ changed: sql<number>`${changed}` })
      .from(sql`(SELECT 1)`),
    selectReferenced(db, kind, references).where(changed),
  ])
  const changes = rows.map((artifact) => ({ id: artifact.id, version: artifact.version, artifact }))
  return { changes, revision: revisionIn(now), more: false, ...(flag?.changed ? { whole: true } : {}) }
}

const anyChanged = (references: readonly Reference[], since: number): SQL => sql`EXISTS (
  SELECT 1 FROM json_each(${JSON.stringify(references.map(({ id }) => id))}) AS wanted
  CROSS JOIN artifact_versions AS versions ON versions.kind = 'reflex' AND versions.id = wanted.value AND versions.revision > ${since})`

/** Versions that became active, or ceased to be. */
async function owned(
  db: D1Database,
  { kind, scope }: Extract<Subscription, { scope: string }>,
  { since, limit }: { since: number; limit: number },
): Promise<ArtifactChanges> {
  const patterns = await ownersPatterns(db, [scope])
  const [now, rows] = await drizzle(db).batch([newest(db), changedOf(db, kind, { patterns, since, limit: limit + 1 })])
  const page = rows.slice(0, limit)
  const more = rows.length > limit
  const changes = page.map(({ revision: _revision, ...artifact }) => ({
    id: artifact.id,
    version: artifact.version,
    artifact: artifact.state === 'active' ? artifact : null,
  }))
  return { changes, revision: more ? (page.at(-1)?.revision ?? since) : revisionIn(now), more }
}

const newest = (db: D1Database) =>
  drizzle(db)
    .select({ revision: max(artifactVersions.revision) })
    .from(artifactVersions)
const revisionIn = ([row]: { revision: number | null }[]): number => row?.revision ?? 0

/** Reads the content of one page only: CROSS JOIN starts from the owners' artifacts. */
function changedOf(
  db: D1Database,
  kind: Subscription['kind'],
  { patterns, since, limit }: { patterns: readonly string[]; since: number; limit: number },
) {
  const { id, version, revision, state, content } = artifactVersions
  const page = sql`SELECT versions.id, versions.version
    FROM (SELECT DISTINCT id FROM ${artifactPatterns} WHERE kind = ${kind} AND ${isPattern(patterns)}) AS mine
    CROSS JOIN artifact_versions AS versions ON versions.kind = ${kind} AND versions.id = mine.id AND versions.revision > ${since}
    ORDER BY versions.revision LIMIT ${limit}`
  return drizzle(db)
    .select({ ...wholeVersion, content: sql<string>`iif(${state} = 'active', ${content}, '')`, revision })
    .from(sql`(${page}) AS page`)
    .crossJoin(artifactVersions)
    .innerJoin(artifacts, sql`${artifacts.kind} = ${kind} AND ${artifacts.id} = page.id`)
    .where(sql`${artifactVersions.kind} = ${kind} AND ${eq(id, sql`page.id`)} AND ${eq(version, sql`page.version`)}`)
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

/** The first `limit` scopes by name. */
export async function scopesUsing(db: D1Database, id: string, limit: number): Promise<string[]> {
  const rows = await drizzle(db)
    .select({ scope: reflexUses.scope })
    .from(reflexUses)
    .where(eq(reflexUses.reflex_id, id))
    .orderBy(asc(reflexUses.scope))
    .limit(limit)
  return rows.map(({ scope }) => scope)
}
