import { and, asc, eq, gt, max, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { Artifact, ArtifactChanges, Reference, ArtifactSubscription } from '../../contract/artifact.ts'
import { matchesScope } from '../../contract/principal.ts'
import { isPattern, ownersPatterns } from './patterns.ts'
import { entitlementsOf, runnable, type Entitlement } from './entitlements.ts'
import { selectReferenced, wholeVersion } from './artifacts.ts'
import { artifactPatterns, artifacts, artifactVersions, reflexUses } from './tables.ts'

/** A manifest has up to 128 kB, more with defaults. */
const PAGE = 50

/**
 * The artifacts of a subscription that changed since a revision; all of them since 0. An unchanged
 * feed costs one row.
 */
export async function readFeed(db: D1Database, of: ArtifactSubscription, since_revision: number, limit = PAGE): Promise<ArtifactChanges> {
  const latest = revisionIn(await newest(db))
  if (latest === since_revision) return { changes: [], revision: latest, more: false }
  const restart = latest < since_revision
  const since = restart ? 0 : since_revision
  const { references } = of
  const page = references ? await referenced(db, { ...of, references }, since) : await owned(db, of, { since, limit })
  return restart ? { ...page, restart } : page
}

/** All versions that the references stand for, if any of them changed. */
async function referenced(
  db: D1Database,
  { kind, scope, references }: ArtifactSubscription & { references: readonly Reference[] },
  since: number,
): Promise<ArtifactChanges> {
  const entitled = await entitlementsOf(db, { kind, scope, ids: references.map(({ id }) => id) })
  // A licence is for one version, which may not be the newest.
  const licensed = entitled.flatMap(({ in_use, id, version }) => (in_use ? [{ id, version: Number(version) }] : []))
  const changed = since === 0 ? sql`true` : anyChanged(references, since)
  const [now, [flag], rows] = await drizzle(db).batch([
    newest(db),
    drizzle(db)
      .select({ changed: sql<number>`${changed}` })
      .from(sql`(SELECT 1)`),
    selectReferenced(db, kind, [...references, ...licensed]).where(changed),
  ])
  const changes = rows.map((row) => ({ id: row.id, version: row.version, artifact: runnable(row, scope, entitled) }))
  return { changes, revision: revisionIn(now), more: false, ...(flag?.changed ? { whole: true } : {}) }
}

const anyChanged = (references: readonly Reference[], since: number): SQL => sql`EXISTS (
  SELECT 1 FROM json_each(${JSON.stringify(references.map(({ id }) => id))}) AS wanted
  CROSS JOIN artifact_versions AS versions ON versions.kind = 'reflex' AND versions.id = wanted.value AND versions.revision > ${since})`

/** Versions that became active, or ceased to be. */
async function owned(
  db: D1Database,
  { kind, scope }: ArtifactSubscription,
  { since, limit }: { since: number; limit: number },
): Promise<ArtifactChanges> {
  const [patterns, entitled] = await Promise.all([ownersPatterns(db, [scope]), entitlementsOf(db, { kind, scope })])
  const [now, rows] = await drizzle(db).batch([newest(db), changedOf(db, kind, { patterns, entitled, since, limit: limit + 1 })])
  // An unsealed skill runs elsewhere by a licence only, unlike a reflex that a chain names.
  const mayRun = ({ scopes, id, version }: Artifact) =>
    scopes.some((pattern) => matchesScope(pattern, scope)) || entitled.some((one) => one.in_use && one.id === id && one.version === version)
  const page = rows.slice(0, limit)
  const more = rows.length > limit
  const changes = page.map(({ revision: _revision, ...artifact }) => ({
    id: artifact.id,
    version: artifact.version,
    artifact: artifact.state === 'active' && mayRun(artifact) ? runnable(artifact, scope, entitled) : null,
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
  kind: ArtifactSubscription['kind'],
  { patterns, entitled, since, limit }: { patterns: readonly string[]; entitled: readonly Entitlement[]; since: number; limit: number },
) {
  const { id, version, revision, state, content } = artifactVersions
  const named = JSON.stringify(entitled.map((one) => [one.id, one.version]))
  const page = sql`SELECT versions.id, versions.version, versions.revision
    FROM (SELECT DISTINCT id FROM ${artifactPatterns} WHERE kind = ${kind} AND ${isPattern(patterns)}) AS mine
    CROSS JOIN artifact_versions AS versions ON versions.kind = ${kind} AND versions.id = mine.id AND versions.revision > ${since}
    UNION SELECT versions.id, versions.version, versions.revision FROM json_each(${named}) AS entitled
    CROSS JOIN artifact_versions AS versions
      ON versions.kind = ${kind} AND versions.id = entitled.value->>0 AND versions.version = entitled.value->>1 AND versions.revision > ${since}
    ORDER BY 3 LIMIT ${limit}`
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

/** The first `limit` scopes by name, after one. */
export async function scopesUsing(db: D1Database, id: string, limit: number, after = ''): Promise<string[]> {
  const rows = await drizzle(db)
    .select({ scope: reflexUses.scope })
    .from(reflexUses)
    .where(and(eq(reflexUses.reflex_id, id), gt(reflexUses.scope, after)))
    .orderBy(asc(reflexUses.scope))
    .limit(limit)
  return rows.map(({ scope }) => scope)
}
