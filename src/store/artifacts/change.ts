import { and, eq, inArray, or, sql, type Column, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { artifactKinds, type Artifact, type ArtifactKind, type NewArtifact, type Owner, type Stage } from '../../contract/artifact.ts'
import { insertPatterns } from './patterns.ts'
import { selectVersion } from './artifacts.ts'
import { hasPassed } from './skill-tests.ts'
import { artifacts, artifactVersions } from './tables.ts'

const nextRevision = sql`(SELECT coalesce(max(revision), 0) + 1 FROM artifact_versions)`

/**
 * Inserts a version in one transaction, if `owner` owns the artifact and it has fewer than `most`.
 * `found` is the version afterwards: of that name, or the newest if the registry counts.
 */
export async function insertVersion(
  db: D1Database,
  draft: NewArtifact,
  { owner: { owner_id, scopes }, most }: { owner: Owner; most: number },
): Promise<{ inserted: boolean; found: Artifact | undefined }> {
  const { kind, id, version, hash, content, description, state, provenance, sharing, sealed = false, program, now } = draft
  const { by_owner } = artifactKinds[kind]
  const { name, precedence, taken, same } = version ? declared(draft, version) : counted(draft)
  const database = drizzle(db)
  // Columns in the schema's order.
  const row = sql`SELECT ${kind}, ${id}, ${name}, ${precedence}, ${content}, ${hash}, ${description}, ${state}, NULL, ${now},
      ${by_owner ? sql`0` : nextRevision}, ${JSON.stringify(provenance)}, ${now}, ${sharing}, 0, ${Number(sealed)}, ${program}
    FROM (${taken})
    WHERE taken < ${most} AND NOT ${same}
      AND EXISTS (SELECT 1 FROM artifacts WHERE kind = ${kind} AND id = ${id} AND owner_id = ${owner_id} AND scopes = ${JSON.stringify(scopes)})`
  const inserted = [
    database
      .insert(artifacts)
      .values({ kind, id, owner: draft.owner, owner_id: draft.owner_id, scopes: [...draft.scopes], created_at: now })
      .onConflictDoNothing(),
    database.insert(artifactVersions).select(row).onConflictDoNothing().returning({ version: artifactVersions.version }),
    selectVersion(db, { kind, id, version: version?.name }),
  ] as const
  const has_patterns = by_owner || sharing === 'project'
  const [, rows, [found]] = has_patterns
    ? await database.batch([...inserted, insertPatterns(db, kind, id)])
    : await database.batch(inserted)
  return { inserted: rows.length > 0, found }
}

/** The registry assigns the next number, so that concurrent calls get different ones. */
const counted = ({ kind, id, hash, description }: NewArtifact) => ({
  name: sql`CAST(taken + 1 AS TEXT)`,
  precedence: sql`printf('%07d', taken + 1)`,
  taken: sql`SELECT CAST(coalesce(max(precedence), 0) AS INTEGER) AS taken FROM artifact_versions WHERE kind = ${kind} AND id = ${id}`,
  same: sql`EXISTS (SELECT 1 FROM artifact_versions WHERE kind = ${kind} AND id = ${id} AND precedence = printf('%07d', taken)
    AND hash = ${hash} AND description = ${description})`,
})

/** An existing version is a conflict, which inserts nothing. */
const declared = ({ kind, id }: NewArtifact, { name, precedence }: { name: string; precedence: string }) => ({
  name,
  precedence,
  taken: sql`SELECT count(*) AS taken FROM artifact_versions WHERE kind = ${kind} AND id = ${id}`,
  same: sql`false`,
})

export type Quota = { versions: number; bytes: number }
export type StageChange = {
  kind: ArtifactKind
  id: string
  version: string
  from: readonly Stage[]
  to: Stage
  reason: string | null
  by_proof: boolean
  quota: Quota | null
  /** Becomes active only if its latest test passed. */
  tested: boolean
  /** Replaces that test. */
  forced: Forced | null
  /** Someone else changed the state after this time: the reason ends otherwise. */
  unless?: { since: number; by: string } | null
  now: number
}
/** A person who activated a version without a passing test. Time in ms. */
export type Forced = { by: string; reason: string; at: number }

/** Changes a version that is in one of `from`, if the quota allows it. True if it did. */
export async function updateStage(db: D1Database, change: StageChange): Promise<boolean> {
  const { kind, id, version, from, to, reason, by_proof, quota, tested, forced, unless, now } = change
  const changed = await drizzle(db)
    .update(artifactVersions)
    .set({
      state: to,
      state_reason: reason,
      state_at: now,
      by_proof,
      revision: nextRevision,
      ...(forced && { provenance: sql`json_set(${artifactVersions.provenance}, '$.forced', json(${JSON.stringify(forced)}))` }),
    })
    .where(
      and(
        eq(artifactVersions.kind, kind),
        eq(artifactVersions.id, id),
        eq(artifactVersions.version, version),
        inArray(artifactVersions.state, [...from]),
        unless ? or(eq(artifactVersions.state_at, unless.since), endsWith(artifactVersions.state_reason, unless.by)) : undefined,
        to === 'active' && quota ? hasRoom(kind, id, quota) : undefined,
        to === 'active' && tested && !forced ? hasPassed : undefined,
      ),
    )
    .returning({ id: artifactVersions.id })
  return changed.length > 0
}

/** Publishes a version, or takes that back: scopes that run it read it again. */
export async function updateSharing(
  db: D1Database,
  { kind, id, version, sharing }: Pick<NewArtifact, 'kind' | 'id' | 'sharing'> & { version: string },
): Promise<void> {
  const named = and(eq(artifactVersions.kind, kind), eq(artifactVersions.id, id), eq(artifactVersions.version, version))
  await drizzle(db).batch([
    drizzle(db).update(artifactVersions).set({ sharing, revision: nextRevision }).where(named),
    // A reflex that was always published has no patterns of its owner yet.
    insertPatterns(db, kind, id),
  ])
}

const endsWith = (column: Column, text: string): SQL => sql`substr(${column}, -length(${text})) = ${text}`

/** True if the quota has room for the version besides the owner's active ones. */
const hasRoom = (kind: ArtifactKind, id: string, { versions, bytes }: Quota): SQL => sql`(
  SELECT count(*) < ${versions} AND coalesce(sum(octet_length(other.content)), 0) + octet_length(${artifactVersions.content}) <= ${bytes}
  FROM artifacts AS owned CROSS JOIN artifact_versions AS other ON other.kind = owned.kind AND other.id = owned.id AND other.state = 'active'
  WHERE owned.kind = ${kind} AND owned.owner_id = (SELECT owner_id FROM artifacts WHERE kind = ${kind} AND id = ${id}))`
