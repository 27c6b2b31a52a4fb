import { and, asc, desc, eq, getTableColumns, gt, inArray, or, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { precedenceOfCount, type ArtifactHead, type ArtifactKind, type Owner, type Reference, type Stage } from '../../contract/artifact.ts'
import type { Page } from '../../contract/scope-api.ts'
import { bytesOf, keysOfPage, pageOf } from '../page-by-bytes.ts'
import { readable, sightOf } from './patterns.ts'
import { artifacts, artifactVersions } from './tables.ts'

const { kind: _kind, content, precedence, revision: _revision, program: _program, ...versionColumns } = getTableColumns(artifactVersions)
const head = { ...versionColumns, owner: artifacts.owner, owner_id: artifacts.owner_id, scopes: artifacts.scopes }
/** For a query that joins both tables. */
export const wholeVersion = { ...head, content }
const ofVersion = and(eq(artifacts.kind, artifactVersions.kind), eq(artifacts.id, artifactVersions.id))

type Ref = { kind: ArtifactKind; id: string; version?: string | undefined }

const isRef = ({ kind, id, version }: Ref): SQL | undefined =>
  and(
    eq(artifactVersions.kind, kind),
    eq(artifactVersions.id, id),
    version === undefined ? undefined : eq(artifactVersions.version, version),
  )

/** The named version; otherwise the newest, or the newest active one if `prefers_active`. */
export const selectVersion = (
  db: D1Database,
  ref: Ref,
  { prefers_active = false, visible }: { prefers_active?: boolean; visible?: SQL | undefined } = {},
) =>
  drizzle(db)
    .select(wholeVersion)
    .from(artifactVersions)
    .innerJoin(artifacts, ofVersion)
    .where(and(isRef(ref), visible))
    .orderBy(...(prefers_active ? [desc(eq(artifactVersions.state, 'active'))] : []), desc(precedence))
    .limit(1)

export type VersionRow = Pick<ArtifactHead, 'version' | 'hash' | 'state' | 'state_reason' | 'state_at' | 'created_at'>

export async function listVersions(db: D1Database, ref: Ref, visible?: SQL): Promise<VersionRow[]> {
  const { version, hash, state, state_reason, state_at, created_at } = artifactVersions
  return drizzle(db)
    .select({ version, hash, state, state_reason, state_at, created_at })
    .from(artifactVersions)
    .innerJoin(artifacts, ofVersion)
    .where(and(isRef(ref), visible))
    .orderBy(desc(precedence))
}

/** The newest active version of each of these ids that has one. */
export const newestActive = (db: D1Database, kind: ArtifactKind, ids: readonly string[], visible: SQL) =>
  drizzle(db)
    // SQLite takes the other columns from the row of the maximum.
    .select({ id: artifactVersions.id, version: artifactVersions.version, precedence: sql<string>`max(${precedence})` })
    .from(artifactVersions)
    .innerJoin(artifacts, ofVersion)
    .where(
      and(
        eq(artifactVersions.kind, kind),
        sql`${artifactVersions.id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
        eq(artifactVersions.state, 'active'),
        visible,
      ),
    )
    .groupBy(artifactVersions.id)

export const findOwner = (db: D1Database, { kind, id }: Ref): Promise<Owner | undefined> =>
  drizzle(db)
    .select()
    .from(artifacts)
    .where(and(eq(artifacts.kind, kind), eq(artifacts.id, id)))
    .get()

/** `q` searches ids and descriptions; `cursor` is the last id of the previous page. */
export type ArtifactQuery = {
  owner?: string | undefined
  state?: Stage | undefined
  q?: string | undefined
  cursor?: string | undefined
  limit: number
  /** The scopes of the key that asks. */
  key_scopes?: readonly string[]
}

/** Lists by id, one version each: the newest in `state`, or the one of `selectVersion`. */
export async function listArtifacts(
  db: D1Database,
  { kind, prefers_active }: { kind: ArtifactKind; prefers_active: boolean },
  { owner, state, q, cursor, limit, key_scopes = ['*'] }: ArtifactQuery,
): Promise<Page<ArtifactHead>> {
  const visible = readable(await sightOf(db, key_scopes), { sharing: sql`other.sharing`, version: sql`other.version` })
  const newest = (wanted?: Stage) => sql`(SELECT max(precedence) FROM artifact_versions AS other WHERE other.kind = ${kind}
    AND other.id = ${artifacts.id} ${wanted === undefined ? sql.empty() : sql`AND other.state = ${wanted}`} AND ${visible})`
  const shown = prefers_active && state === undefined ? sql`coalesce(${newest('active')}, ${newest()})` : newest(state)
  const isShown = and(ofVersion, eq(precedence, shown))
  const { description, state_reason, provenance } = artifactVersions
  const where = and(
    eq(artifacts.kind, kind),
    owner === undefined ? undefined : eq(artifacts.owner, owner),
    cursor === undefined ? undefined : gt(artifacts.id, cursor),
    // D1 rejects LIKE patterns beyond 50 bytes.
    q === undefined ? undefined : or(contains(sql`${artifacts.id}`, q), contains(sql`${description}`, q)),
  )
  const bytes = bytesOf(artifacts.scopes, description, state_reason, provenance)
  const from = sql`${artifacts} INNER JOIN ${artifactVersions} ON ${isShown}`
  const rows = await drizzle(db)
    .select({ ...head, bytes })
    .from(artifacts)
    .innerJoin(artifactVersions, isShown)
    .where(and(eq(artifacts.kind, kind), inArray(artifacts.id, keysOfPage({ from, where, key: artifacts.id, bytes, limit, rising: true }))))
    .orderBy(asc(artifacts.id))
  const { items, more } = pageOf(rows, limit)
  return { items, next_cursor: more ? (items.at(-1)?.id ?? null) : null }
}

const contains = (column: SQL, text: string): SQL => sql`instr(lower(${column}), lower(${text})) > 0`

/**
 * The versions that references stand for now: a pinned one in any state, else the newest active
 * one, the newest that a person activated, which acts where a proof does not reach, and the newest
 * in shadow if that is newer.
 */
export function selectReferenced(db: D1Database, kind: ArtifactKind, references: readonly Reference[]) {
  const list = references.map(({ id, version }) => [id, version === undefined ? null : precedenceOfCount(version)])
  const newest = (state: Stage, and = sql`true`) =>
    sql`(SELECT max(precedence) FROM artifact_versions AS v WHERE v.kind = ${kind} AND v.id = wanted.id AND v.state = ${state} AND ${and})`
  const earlier = newest('active', sql`NOT v.by_proof`)
  const wanted = sql`WITH
    wanted AS (SELECT value->>0 AS id, value->>1 AS precedence FROM json_each(${JSON.stringify(list)})),
    followed AS (SELECT id, ${newest('active')} AS active, ${earlier} AS earlier, ${newest('shadow')} AS shadow
      FROM wanted WHERE precedence IS NULL)
    SELECT id, precedence FROM wanted UNION SELECT id, active FROM followed UNION SELECT id, earlier FROM followed
    UNION SELECT id, shadow FROM followed WHERE shadow > coalesce(active, '')`
  // A join: as a condition with IN, every version would be read.
  return drizzle(db)
    .select(wholeVersion)
    .from(sql`(${wanted}) AS wanted`)
    .innerJoin(
      artifactVersions,
      sql`${artifactVersions.kind} = ${kind} AND ${artifactVersions.id} = wanted.id AND ${precedence} = wanted.precedence`,
    )
    .innerJoin(artifacts, ofVersion)
}
