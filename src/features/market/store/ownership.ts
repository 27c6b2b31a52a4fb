import { and, eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { ArtifactKind, Owner } from '../../../contract/artifact.ts'
import { agentOwner, scopeOfOwner } from '../../../contract/reflex.ts'
import { insertPatterns } from '../../../store/artifacts/patterns.ts'
import { putEntitlements, type Entitlement } from '../../../store/artifacts/entitlements.ts'
import { artifactPatterns, artifacts, artifactVersions, entitlements } from '../../../store/artifacts/tables.ts'
import { keys } from '../../../store/schema.ts'

type ArtifactName = { kind: ArtifactKind; id: string }

/** Hides the content of a version from all but its owner and admins, before it is listed. */
export async function sealVersion(db: D1Database, { kind, id, version }: ArtifactName & { version: string }): Promise<void> {
  const { kind: kinds, id: ids, version: versions, sealed } = artifactVersions
  const named = and(eq(kinds, kind), eq(ids, id), eq(versions, version), eq(sealed, false))
  await drizzle(db).update(artifactVersions).set({ sealed: true, revision: nextRevision }).where(named)
}

const nextRevision = sql`(SELECT coalesce(max(revision), 0) + 1 FROM artifact_versions)`

/** Copies of scopes read a version again after its revision has changed. */
const renew = (db: D1Database, { kind, id, version }: ArtifactName & { version?: string }) => {
  const { kind: kinds, id: ids, version: versions } = artifactVersions
  const named = and(eq(kinds, kind), eq(ids, id), version === undefined ? undefined : eq(versions, version))
  return drizzle(db).update(artifactVersions).set({ revision: nextRevision }).where(named)
}

/** Writes what a deal entitles to. False if D1 has it already. */
export async function deliverLicence(
  db: D1Database,
  of: ArtifactName & { version: string },
  rows: readonly Omit<Entitlement, 'prefix'>[],
): Promise<boolean> {
  const deal_id = rows[0]?.deal_id ?? ''
  const known = await drizzle(db).select().from(entitlements).where(eq(entitlements.deal_id, deal_id))
  const isKnown = (row: Omit<Entitlement, 'prefix'>) =>
    known.some((one) => one.pattern === row.pattern && (!one.in_use || (row.in_use && one.expires_at === row.expires_at)))
  if (rows.every(isKnown)) return false
  await drizzle(db).batch([renew(db, of), ...putEntitlements(db, rows)])
  return true
}

/**
 * The owner that an account stands for: by the id of its key, which may have been deleted since. If
 * the id is unknown, by the name of the key; null if there is no such key, or several.
 */
export async function ownerOf(db: D1Database, account: string, id: string | null): Promise<Owner | null> {
  const scope = scopeOfOwner(account)
  if (scope !== null) return { owner: account, owner_id: agentOwner(scope), scopes: [scope] }
  const name = account.slice('key:'.length)
  const of = id === null ? eq(keys.name, name) : eq(keys.id, id)
  const [found, ...others] = await drizzle(db).select().from(keys).where(of).limit(2)
  if (found && others.length === 0) return { owner: found.name, owner_id: found.id, scopes: found.scopes }
  return id === null ? null : { owner: name, owner_id: id, scopes: [] }
}

/**
 * Gives an artifact from its seller to its buyer, with all its versions. The scopes of the seller
 * lose it: the rows that say so name the deal, so that a repeated call changes nothing, even if the
 * seller has bought it back since.
 */
export async function changeOwner(
  db: D1Database,
  { kind, id }: ArtifactName,
  { deal_id, seller, buyer, now }: { deal_id: string; seller: Owner; buyer: Owner; now: number },
): Promise<boolean> {
  const database = drizzle(db)
  const named = and(eq(artifacts.kind, kind), eq(artifacts.id, id))
  const before = await database.select().from(artifacts).where(named).get()
  const done = await database.select().from(entitlements).where(eq(entitlements.deal_id, deal_id)).limit(1)
  if (done.length > 0 || before?.owner_id === buyer.owner_id) return false
  if (before?.owner_id !== seller.owner_id) throw new Error(`the ${kind} ${id} does not belong to ${seller.owner}, which sold it`)
  const is = and(named, eq(artifacts.owner_id, seller.owner_id))
  const ended = sql`SELECT ${deal_id}, versions.kind, versions.id, versions.version, value, substr(value, 1, instr(value || '*', '*') - 1),
      versions.hash, NULL, NULL, 0, 0, CAST(${now} AS INTEGER)
    FROM artifact_versions AS versions, json_each(${JSON.stringify(before.scopes)}) WHERE versions.kind = ${kind} AND versions.id = ${id}`
  const had_patterns = and(eq(artifactPatterns.kind, kind), eq(artifactPatterns.id, id))
  const patterns = await database.select().from(artifactPatterns).where(had_patterns).limit(1)
  await database.batch([
    database.insert(entitlements).select(ended).onConflictDoNothing(),
    database
      .update(artifacts)
      .set({ owner: buyer.owner, owner_id: buyer.owner_id, scopes: [...buyer.scopes] })
      .where(is),
    database.delete(artifactPatterns).where(had_patterns),
    renew(db, { kind, id }),
    ...(patterns.length > 0 ? [insertPatterns(db, kind, id)] : []),
  ])
  return true
}

/** Versions with licences that no longer run: retired or demoted since. */
export async function lapsedGoods(db: D1Database, limit: number): Promise<{ artifact: string; hash: string; state: string }[]> {
  const named = and(
    eq(entitlements.kind, artifactVersions.kind),
    eq(entitlements.id, artifactVersions.id),
    eq(entitlements.version, artifactVersions.version),
  )
  const { kind, id, version, hash, state } = artifactVersions
  const rows = await drizzle(db)
    .selectDistinct({ kind, id, version, hash, state })
    .from(entitlements)
    .innerJoin(artifactVersions, named)
    .where(and(eq(entitlements.in_use, true), sql`${state} IN ('retired', 'draft')`))
    .limit(limit)
  return rows.map((row) => ({ artifact: `${row.kind}:${row.id}@${row.version}`, hash: row.hash, state: row.state }))
}
