import { asc, max, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { MOST_FEED_ITEMS, type SkillFeed } from '../contract/skill-feed.ts'
import type { JsonFields } from '../../../base/json.ts'
import { readableBy } from '../../../store/artifacts/patterns.ts'
import { artifacts, artifactVersions } from '../../../store/artifacts/tables.ts'

type FeedQuery = { key_id: string; key_scopes: readonly string[]; project: string | undefined; since: number; limit?: number }

/**
 * The skills that a key may read and that fit a project, as far as they changed since a revision.
 * An unchanged feed costs one row. A revision below `since` means that the registry is older.
 */
export async function readSkillFeed(
  db: D1Database,
  { key_id, key_scopes, project, since, limit = MOST_FEED_ITEMS }: FeedQuery,
): Promise<SkillFeed> {
  const database = drizzle(db)
  const { kind, id, version, hash, state, content, sealed, revision } = artifactVersions
  const newest = () => database.select({ revision: max(revision) }).from(artifactVersions)
  const latest = (rows: { revision: number | null }[]): number => rows[0]?.revision ?? 0
  const unchanged = latest(await newest())
  if (unchanged <= since) return { items: [], revision: unchanged, more: false }
  const visible = await readableBy(db, key_scopes)
  const of = sql`CASE WHEN ${kind} = 'skill' THEN ${content} ->> '$.compat.project' END`
  const fits = project === undefined ? sql`true` : sql`coalesce(${of}, ${project}) = ${project}`
  const [now, rows] = await database.batch([
    newest(),
    database
      .select({
        id,
        version,
        hash,
        revision,
        content: sql<string>`iif(${state} = 'active' AND (NOT ${sealed} OR ${artifacts.owner_id} = ${key_id}), ${content}, '')`,
      })
      .from(artifactVersions)
      .innerJoin(artifacts, sql`${artifacts.kind} = ${kind} AND ${artifacts.id} = ${id}`)
      // A draft has never been handed out.
      .where(sql`${revision} > ${since} AND ${kind} = 'skill' AND ${state} <> 'draft' AND ${visible} AND ${fits}`)
      .orderBy(asc(revision))
      .limit(limit + 1),
  ])
  const page = rows.slice(0, limit)
  const more = rows.length > limit
  const items = page.map(({ revision: _revision, content: text, ...item }) => ({
    ...item,
    manifest: text === '' ? null : (JSON.parse(text) as JsonFields),
  }))
  return { items, revision: more ? (page.at(-1)?.revision ?? since) : latest(now), more }
}
