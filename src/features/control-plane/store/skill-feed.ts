import { asc, max, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { MOST_FEED_ITEMS, type SkillFeed } from '../contract/skill-feed.ts'
import type { JsonFields } from '../../../base/json.ts'
import { readableBy } from '../../../store/artifacts/patterns.ts'
import { artifacts, artifactVersions } from '../../../store/artifacts/tables.ts'

type FeedQuery = { key_id: string; key_scopes: readonly string[]; project: string | undefined; since: number; limit?: number }

/**
 * The skills that a key may read and that fit a project, as far as they changed since a revision.
 * A revision below `since` means that the registry is older. For a key that may read everything an
 * unchanged feed costs one row.
 */
export async function readSkillFeed(db: D1Database, query: FeedQuery): Promise<SkillFeed> {
  return query.key_scopes.includes('*') ? feedOfAll(db, query) : feedOfSome(db, query)
}

async function feedOfAll(db: D1Database, query: FeedQuery): Promise<SkillFeed> {
  const unchanged = revisionIn(await newest(db))
  if (unchanged <= query.since) return { items: [], revision: unchanged, more: false }
  const [now, rows] = await drizzle(db).batch([newest(db), changedItems(db, query, everything(query))])
  return pageOf(rows, query, revisionIn(now))
}

/**
 * The revision counts the changes of all tenants. A key of some scopes gets the newest one among
 * the versions in its feed, so that nothing of others moves it.
 */
async function feedOfSome(db: D1Database, query: FeedQuery): Promise<SkillFeed> {
  const inFeed = sql`${everything(query)} AND ${await readableBy(db, query.key_scopes)}`
  const rows = await changedItems(db, query, inFeed)
  const last = rows.at(-1)
  return pageOf(rows, query, last ? last.revision : await newestIn(db, inFeed, query.since))
}

/** Usually the key has read up to the newest one, which the index finds at once. */
async function newestIn(db: D1Database, inFeed: SQL, since: number): Promise<number> {
  const { revision } = artifactVersions
  const found = (where: SQL) =>
    drizzle(db)
      .select({ revision: max(revision) })
      .from(artifactVersions)
      .innerJoin(artifacts, OF_VERSION)
      .where(sql`${where} AND ${inFeed}`)
  return revisionIn(await found(sql`${revision} = ${since}`)) || revisionIn(await found(sql`${revision} < ${since}`))
}

const newest = (db: D1Database) =>
  drizzle(db)
    .select({ revision: max(artifactVersions.revision) })
    .from(artifactVersions)
const revisionIn = ([row]: { revision: number | null }[]): number => row?.revision ?? 0

const OF_VERSION = sql`${artifacts.kind} = ${artifactVersions.kind} AND ${artifacts.id} = ${artifactVersions.id}`

/** A draft has never been handed out. */
function everything({ project }: FeedQuery): SQL {
  const { kind, content, state } = artifactVersions
  const of = sql`CASE WHEN ${kind} = 'skill' THEN ${content} ->> '$.compat.project' END`
  const fits = project === undefined ? sql`true` : sql`coalesce(${of}, ${project}) = ${project}`
  return sql`${kind} = 'skill' AND ${state} <> 'draft' AND ${fits}`
}

/** It reads one version more than a page has. */
function changedItems(db: D1Database, { key_id, since, limit = MOST_FEED_ITEMS }: FeedQuery, inFeed: SQL) {
  const { id, version, hash, state, content, sealed, revision } = artifactVersions
  return drizzle(db)
    .select({
      id,
      version,
      hash,
      revision,
      content: sql<string>`iif(${state} = 'active' AND (NOT ${sealed} OR ${artifacts.owner_id} = ${key_id}), ${content}, '')`,
    })
    .from(artifactVersions)
    .innerJoin(artifacts, OF_VERSION)
    .where(sql`${revision} > ${since} AND ${inFeed}`)
    .orderBy(asc(revision))
    .limit(limit + 1)
}

type Changed = Awaited<ReturnType<typeof changedItems>>

function pageOf(rows: Changed, { since, limit = MOST_FEED_ITEMS }: FeedQuery, newest_revision: number): SkillFeed {
  const page = rows.slice(0, limit)
  const more = rows.length > limit
  const items = page.map(({ revision: _revision, content: text, ...item }) => ({
    ...item,
    manifest: text === '' ? null : (JSON.parse(text) as JsonFields),
  }))
  return { items, revision: more ? (page.at(-1)?.revision ?? since) : newest_revision, more }
}
