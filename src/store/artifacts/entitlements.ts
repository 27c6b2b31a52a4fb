import { and, eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { Artifact, ArtifactKind } from '../../contract/artifact.ts'
import type { ScopeLicence } from '../../contract/licence.ts'
import { matchesScope, prefixOf } from '../../contract/principal.ts'
import { entitlements } from './tables.ts'

export type Entitlement = typeof entitlements.$inferSelect

/** The entitlements of a scope, ended ones included: to these artifacts, or to all of the kind. */
export async function entitlementsOf(
  db: D1Database,
  { kind, scope, ids }: { kind: ArtifactKind; scope: string; ids?: readonly string[] | undefined },
): Promise<Entitlement[]> {
  const prefixes = Array.from({ length: scope.length + 1 }, (_, length) => scope.slice(0, length))
  const where =
    ids === undefined
      ? sql`${entitlements.prefix} IN (SELECT value FROM json_each(${JSON.stringify(prefixes)}))`
      : sql`${entitlements.id} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
  const rows = await drizzle(db)
    .select()
    .from(entitlements)
    .where(and(eq(entitlements.kind, kind), where))
  return rows.filter(({ pattern }) => matchesScope(pattern, scope))
}

/**
 * The version as a scope may run it: of an owner that covers the scope, published, or with its
 * licences. Null if it is none of these; what is sealed counts as published no longer.
 */
export function runnable(artifact: Artifact, scope: string, entitled: readonly Entitlement[]): Artifact | null {
  if (artifact.scopes.some((pattern) => matchesScope(pattern, scope))) return artifact
  const licences = licencesIn(entitled, artifact)
  if (licences.length === 0) return artifact.sealed || artifact.sharing !== 'org' ? null : artifact
  return { ...artifact, licences }
}

/** The licences in use for a version, among the entitlements of a scope. */
export function licencesIn(
  entitled: readonly Entitlement[],
  { id, version, hash }: Pick<Artifact, 'id' | 'version' | 'hash'>,
): ScopeLicence[] {
  const held = entitled.filter((one) => one.in_use && one.id === id && one.version === version && one.hash === hash)
  return Array.from(new Map(held.map((one) => [one.deal_id, licenceOf(one)])).values())
}

const licenceOf = ({ deal_id, expires_at, fires, metered }: Entitlement): ScopeLicence => ({ deal_id, expires_at, fires, metered })

/** Statements that replace the entitlements of a deal, and renew the copies of scopes. */
export function putEntitlements(db: D1Database, rows: readonly Omit<Entitlement, 'prefix'>[]) {
  const database = drizzle(db)
  const { in_use, expires_at } = entitlements
  return rows.map((row) =>
    database
      .insert(entitlements)
      .values({ ...row, prefix: prefixOf(row.pattern) })
      .onConflictDoUpdate({
        target: [entitlements.deal_id, entitlements.kind, entitlements.id, entitlements.version, entitlements.pattern],
        // An entitlement that has ended does not return: an older delivery may arrive last.
        set: { in_use: row.in_use, expires_at: row.expires_at, ended_at: row.ended_at },
        setWhere: sql`${in_use} = 1 AND (${in_use} <> ${Number(row.in_use)} OR ${expires_at} IS NOT ${row.expires_at})`,
      }),
  )
}

/** Forgets rights that ended before a time: all copies of scopes know of it. */
export async function forgetEntitlements(db: D1Database, before: number, limit: number): Promise<number> {
  const ended = 'SELECT rowid FROM entitlements WHERE in_use = 0 AND ended_at < ?1 LIMIT ?2'
  return (await db.prepare(`DELETE FROM entitlements WHERE rowid IN (${ended})`).bind(before, limit).run()).meta.changes
}
