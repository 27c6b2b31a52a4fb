import { and, asc, desc, eq, gt, inArray, or, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { ReflexReference, ReflexState, ReflexVersion } from '../contract/reflex.ts'
import type { Page } from '../contract/scope-api.ts'
import { bytesOf, keysOfPage, pageOf } from './page-by-bytes.ts'
import { reflexes, reflexVersions } from './schema.ts'

const listed = {
  id: reflexVersions.id,
  version: reflexVersions.version,
  hash: reflexVersions.hash,
  owner: reflexes.owner,
  owner_id: reflexes.owner_id,
  scopes: reflexes.scopes,
  description: reflexVersions.description,
  state: reflexVersions.state,
  state_reason: reflexVersions.state_reason,
  provenance: reflexVersions.provenance,
  created_at: reflexVersions.created_at,
}
const whole = { ...listed, code: reflexVersions.code }
const ofVersion = eq(reflexes.id, reflexVersions.id)

export type ListedReflex = Omit<ReflexVersion, 'code'>
/** Times in ms; `state_at` is when the version came into its state. */
export type VersionSummary = Pick<ReflexVersion, 'version' | 'hash' | 'state' | 'state_reason' | 'created_at'> & { state_at: number }

/** The newest version unless one is given. */
export async function findReflex(db: D1Database, id: string, version?: number): Promise<ReflexVersion | null> {
  const wanted = and(eq(reflexVersions.id, id), version === undefined ? undefined : eq(reflexVersions.version, version))
  return (await newestWhere(db, wanted).get()) ?? null
}

export const newestWhere = (db: D1Database, condition: SQL | undefined) =>
  drizzle(db)
    .select(whole)
    .from(reflexVersions)
    .innerJoin(reflexes, ofVersion)
    .where(condition)
    .orderBy(desc(reflexVersions.version))
    .limit(1)

/** Newest first. */
export async function listVersions(db: D1Database, id: string): Promise<VersionSummary[]> {
  const { version, hash, state, state_reason, state_at, created_at } = reflexVersions
  return drizzle(db)
    .select({ version, hash, state, state_reason, state_at, created_at })
    .from(reflexVersions)
    .where(eq(reflexVersions.id, id))
    .orderBy(desc(version))
}

/** `q` is looked for in ids and descriptions, in capitals or not; `cursor` is the last id of the page before. */
export type ReflexQuery = {
  owner?: string | undefined
  state?: ReflexState | undefined
  q?: string | undefined
  cursor?: string | undefined
  limit: number
}

/** By id, the newest version of each: of those in `state`, where that is given. */
export async function listReflexes(db: D1Database, { owner, state, q, cursor, limit }: ReflexQuery): Promise<Page<ListedReflex>> {
  const inState = state === undefined ? sql.empty() : sql`AND state = ${state}`
  const newest = sql`(SELECT max(version) FROM reflex_versions AS other WHERE other.id = ${reflexes.id} ${inState})`
  const shown = and(eq(reflexVersions.id, reflexes.id), eq(reflexVersions.version, newest))
  const where = and(
    owner === undefined ? undefined : eq(reflexes.owner, owner),
    cursor === undefined ? undefined : gt(reflexes.id, cursor),
    // D1 takes no LIKE pattern beyond 50 bytes.
    q === undefined ? undefined : or(contains(sql`${reflexes.id}`, q), contains(sql`${reflexVersions.description}`, q)),
  )
  const { description, state_reason, provenance } = reflexVersions
  const bytes = bytesOf(reflexes.scopes, description, state_reason, provenance)
  const from = sql`${reflexes} INNER JOIN ${reflexVersions} ON ${shown}`
  const rows = await drizzle(db)
    .select({ ...listed, bytes })
    .from(reflexes)
    .innerJoin(reflexVersions, shown)
    .where(inArray(reflexes.id, keysOfPage({ from, where, key: reflexes.id, bytes, limit, rising: true })))
    .orderBy(asc(reflexes.id))
  const { items, more } = pageOf(rows, limit)
  return { items, next_cursor: more ? (items.at(-1)?.id ?? null) : null }
}

const contains = (column: SQL, text: string): SQL => sql`instr(lower(${column}), lower(${text})) > 0`

/**
 * What a chain's references stand for now, in one query, in no order: for one with a version that version, in whatever state; for one without, the
 * newest active version, and the newest one in shadow if it is newer than that.
 */
export async function resolveReflexes(
  db: D1Database,
  references: readonly Pick<ReflexReference, 'id' | 'version'>[],
): Promise<ReflexVersion[]> {
  if (references.length === 0) return []
  const wanted = sql`WITH
    wanted AS (SELECT value->>'id' AS id, value->>'version' AS version FROM json_each(${JSON.stringify(references)})),
    followed AS (SELECT id,
      (SELECT max(version) FROM reflex_versions AS v WHERE v.id = wanted.id AND v.state = 'active') AS active,
      (SELECT max(version) FROM reflex_versions AS v WHERE v.id = wanted.id AND v.state = 'shadow') AS shadow
      FROM wanted WHERE version IS NULL)
    SELECT id, version FROM wanted UNION SELECT id, active FROM followed UNION SELECT id, shadow FROM followed WHERE shadow > coalesce(active, 0)`
  // As a condition, IN (…), it would have every version there is looked at.
  return drizzle(db)
    .select(whole)
    .from(sql`(${wanted}) AS wanted`)
    .innerJoin(reflexVersions, and(eq(reflexVersions.id, sql`wanted.id`), eq(reflexVersions.version, sql`wanted.version`)))
    .innerJoin(reflexes, ofVersion)
}
