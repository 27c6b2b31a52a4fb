import { and, eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { ReflexState, ReflexVersion } from '../contract/reflex.ts'
import type { Refused } from '../contract/scope-api.ts'
import { isHeldBy, refusalOf, type Holder } from './holder.ts'
import { findReflex, newestWhere } from './reflexes.ts'
import { reflexes, reflexVersions } from './schema.ts'

export const MOST_VERSIONS = 1000

/** `may_take_over`: an admin adds versions to what another owns, who stays its owner. `now` in ms. */
export type NewVersion = Pick<
  ReflexVersion,
  'id' | 'code' | 'hash' | 'description' | 'owner' | 'owner_id' | 'scopes' | 'state' | 'provenance'
> & {
  now: number
  may_take_over?: boolean
}
/** `created` is false where the newest version was the same already. */
export type CreatedVersion = { ok: true; version: ReflexVersion; created: boolean } | Refused<'not_owner' | 'too_many_versions'>

/**
 * Adds a version: the newest number plus one, in one transaction, so that concurrent calls get numbers of their own. A reflex belongs to who made its first
 * version, for good; an admin who adds to it has to cover all its scopes.
 */
export async function createReflexVersion(db: D1Database, draft: NewVersion): Promise<CreatedVersion> {
  const holder = (await drizzle(db).select().from(reflexes).where(eq(reflexes.id, draft.id)).get()) ?? draft
  const refusal = refusalOf(`reflex ${draft.id}`, draft, holder)
  if (refusal !== null) return { ok: false, reason: 'not_owner', detail: `${refusal} Copy it, or take another id.` }
  const { inserted, newest } = await insertVersion(db, draft, holder)
  if (newest === undefined) throw new Error(`the reflex ${draft.id} has no version although one was written`)
  // Somebody made a reflex of this id between the look and the transaction: look again, once, for its holder never changes.
  if (!isHeldBy(newest, holder)) return createReflexVersion(db, draft)
  const same = newest.hash === draft.hash && newest.description === draft.description
  if (inserted || same) return { ok: true, version: newest, created: inserted }
  const detail = `The reflex ${draft.id} has ${MOST_VERSIONS} versions, and no room for more. Copy it to go on under another id.`
  return { ok: false, reason: 'too_many_versions', detail }
}

/** With `from`, only a version that is in that state changes: whoever else changed it meanwhile was right. */
export type StateChange = { id: string; version: number; from?: ReflexState; state: ReflexState; reason: string | null; now: number }

/** The version as it is now, or null where there is none. Others stay as they are: of several active ones the newest acts. */
export async function setReflexState(
  db: D1Database,
  { id, version, from, state, reason, now }: StateChange,
): Promise<ReflexVersion | null> {
  await drizzle(db)
    .update(reflexVersions)
    .set({ state, state_reason: reason, state_at: now })
    .where(
      and(eq(reflexVersions.id, id), eq(reflexVersions.version, version), from === undefined ? undefined : eq(reflexVersions.state, from)),
    )
  return findReflex(db, id, version)
}

async function insertVersion(db: D1Database, draft: NewVersion, holder: Holder) {
  const { id, owner, owner_id, scopes, hash, code, description, state, provenance, now } = draft
  const database = drizzle(db)
  // The columns in the schema's order.
  const version = sql`SELECT ${id}, newest + 1, ${hash}, ${code}, ${description}, ${state}, NULL, ${now}, ${JSON.stringify(provenance)}, ${now}
    FROM (SELECT coalesce(max(version), 0) AS newest FROM reflex_versions WHERE id = ${id})
    WHERE newest < ${MOST_VERSIONS}
      AND EXISTS (SELECT 1 FROM reflexes WHERE id = ${id} AND owner_id = ${holder.owner_id} AND scopes = ${JSON.stringify(holder.scopes)})
      AND NOT EXISTS (SELECT 1 FROM reflex_versions WHERE id = ${id} AND version = newest AND hash = ${hash} AND description = ${description})`
  const [, rows, [newest]] = await database.batch([
    database.insert(reflexes).values({ id, owner, owner_id, scopes, created_at: now }).onConflictDoNothing(),
    database.insert(reflexVersions).select(version).returning({ version: reflexVersions.version }),
    newestWhere(db, eq(reflexVersions.id, id)),
  ])
  return { inserted: rows.length > 0, newest }
}
