import { asc, eq, max, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { SkillChanges, StoredManifest } from '../contract/skill.ts'
import { skillVersions } from './schema.ts'
import { ownersPatterns } from './skill-scopes.ts'

/** A manifest is up to 128 kB, more with its defaults filled in. */
const PAGE = 50

/**
 * Which versions a scope may show and run became active since a revision, or ceased to be, in the order of these changes; since 0, all active ones. One
 * that changes while pages are read comes again at the end, so that a copy is right once there is no more. Where nothing changed, this reads one row;
 * otherwise only what belongs to owners whose patterns match the scope.
 */
export async function activeSkills(
  db: D1Database,
  { scope, since_revision = 0, limit = PAGE }: { scope: string; since_revision?: number; limit?: number },
): Promise<SkillChanges> {
  const latest = await newestRevision(db)
  if (latest === since_revision) return { changes: [], revision: latest, more: false }
  const restart = latest < since_revision
  const patterns = await ownersPatterns(db, [scope])
  if (patterns.length === 0) return { changes: [], revision: latest, more: false, ...(restart ? { restart } : {}) }
  const since = restart ? 0 : since_revision
  const [[last], rows] = await drizzle(db).batch([newest(db), changed(db, { patterns, since, limit: limit + 1 })])
  const page = rows.slice(0, limit)
  const more = rows.length > limit
  return {
    changes: page.map(({ revision: _revision, ...change }) => change),
    revision: more ? (page.at(-1)?.revision ?? since) : (last?.revision ?? 0),
    more,
    ...(restart ? { restart } : {}),
  }
}

async function newestRevision(db: D1Database): Promise<number> {
  const [row] = await newest(db)
  return row?.revision ?? 0
}

const newest = (db: D1Database) =>
  drizzle(db)
    .select({ revision: max(skillVersions.revision) })
    .from(skillVersions)

/** Driven by the skills of these owners, and manifests are read of one page alone: CROSS JOIN keeps the order. */
function changed(db: D1Database, { patterns, since, limit }: { patterns: readonly string[]; since: number; limit: number }) {
  const { id, version, hash, revision, state, manifest } = skillVersions
  const page = sql`SELECT versions.id, versions.version
    FROM (SELECT DISTINCT skill_id FROM skill_scopes WHERE pattern IN (SELECT value FROM json_each(${JSON.stringify(patterns)}))) AS mine
    CROSS JOIN skill_versions AS versions ON versions.id = mine.skill_id AND versions.revision > ${since}
    ORDER BY versions.revision LIMIT ${limit}`
  return drizzle(db)
    .select({
      id,
      version,
      hash,
      manifest: sql<StoredManifest | null>`CASE ${state} WHEN 'active' THEN ${manifest} END`.mapWith(parsed),
      revision,
    })
    .from(sql`(${page}) AS page`)
    .crossJoin(skillVersions)
    .where(sql`${eq(id, sql`page.id`)} AND ${eq(version, sql`page.version`)}`)
    .orderBy(asc(revision))
}

const parsed = (text: string): StoredManifest => JSON.parse(text)
