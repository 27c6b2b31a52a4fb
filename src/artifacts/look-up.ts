import type { SQL } from 'drizzle-orm'
import type { ArtifactKind, Owner } from '../contract/artifact.ts'
import type { ScopeLicence } from '../contract/licence.ts'
import { coversScope, hasRole, type Principal } from '../contract/principal.ts'
import { agentOwner, scopeOfOwner, type ReflexVersion } from '../contract/reflex.ts'
import type { SkillVersion } from '../contract/skill.ts'
import { newestActive } from '../store/artifacts/artifacts.ts'
import { readableBy } from '../store/artifacts/patterns.ts'
import { entitlementsOf, licencesIn } from '../store/artifacts/entitlements.ts'
import { reflexes, skills } from './kinds.ts'

/**
 * The asker for a version is a key, or a scope's agent. `in`: the scope in which a key wants to
 * run it, which the key must cover; without one, no licence counts.
 */
export type Asker = { key: Pick<Principal, 'key_id' | 'roles' | 'scopes'>; in?: string | undefined } | { agent: string }

/** A version that the asker may know of. */
export type LookedUp<Version> = {
  version: Version
  /** True if it may read, copy and try the content. */
  reads: boolean
  /** The licences under which the scope runs it; empty if it needs none, null if it may not. */
  licences: readonly ScopeLicence[] | null
}
type Ref<Name> = { id: string; version?: Name | undefined }
type Rights = Omit<Owner, 'owner'> & { id: string; version: string | number; hash: string; sealed: boolean; sharing?: 'project' | 'org' }

/**
 * Looks a version up for somebody, in a scope: the only way to one for whoever is not the platform
 * itself. Null for what the asker may not know of.
 */
export async function lookUpReflex(db: D1Database, { id, version }: Ref<number>, asker: Asker): Promise<LookedUp<ReflexVersion> | null> {
  const found = await reflexes.find(db, id, version, await visibleTo(db, asker))
  return found && { version: found, ...(await rightsOf(db, 'reflex', found, asker)) }
}

export async function lookUpSkill(db: D1Database, { id, version }: Ref<string>, asker: Asker): Promise<LookedUp<SkillVersion> | null> {
  const found = await skills.find(db, id, version, await visibleTo(db, asker))
  return found && { version: found, ...(await rightsOf(db, 'skill', found, asker)) }
}

/** The versions of an artifact that the asker may know of, newest first. */
export const reflexVersionsFor = async (db: D1Database, id: string, asker: Asker) => reflexes.versions(db, id, await visibleTo(db, asker))
export const skillVersionsFor = async (db: D1Database, id: string, asker: Asker) => skills.versions(db, id, await visibleTo(db, asker))

type ListQuery<Of extends { list: (db: D1Database, query: never) => unknown }> = Omit<Parameters<Of['list']>[1], 'key_scopes'>

/** Lists by id, one version each, of what the asker may know of. */
export const listReflexesFor = (db: D1Database, query: ListQuery<typeof reflexes>, asker: Asker) =>
  reflexes.list(db, { ...query, key_scopes: scopesOf(asker) })
export const listSkillsFor = (db: D1Database, query: ListQuery<typeof skills>, asker: Asker) =>
  skills.list(db, { ...query, key_scopes: scopesOf(asker) })

/**
 * By id, the newest active version of each of these reflexes that has one, of what the asker may
 * know of.
 */
export async function actingReflexesFor(db: D1Database, ids: readonly string[], asker: Asker): Promise<Map<string, number>> {
  if (ids.length === 0) return new Map()
  const rows = await newestActive(db, 'reflex', ids, await visibleTo(db, asker))
  return new Map(rows.map(({ id, version }) => [id, Number(version)]))
}

const scopesOf = (asker: Asker): readonly string[] => ('agent' in asker ? [asker.agent] : asker.key.scopes)

const visibleTo = (db: D1Database, asker: Asker): Promise<SQL> => readableBy(db, scopesOf(asker))

async function rightsOf(db: D1Database, kind: ArtifactKind, version: Rights, asker: Asker): Promise<Omit<LookedUp<never>, 'version'>> {
  return { reads: readsContent(version, asker), licences: await licencesOf(db, kind, version, asker) }
}

async function licencesOf(db: D1Database, kind: ArtifactKind, found: Rights, asker: Asker): Promise<readonly ScopeLicence[] | null> {
  const scope = 'agent' in asker ? asker.agent : asker.in
  if (scope === undefined || ('key' in asker && !coversScope(asker.key, scope))) return null
  if (coversScope(found, scope) || (found.sharing === 'org' && !found.sealed)) return []
  const held = licencesIn(await entitlementsOf(db, { kind, scope, ids: [found.id] }), { ...found, version: String(found.version) })
  return held.length > 0 ? held : null
}

/**
 * True for the owner, for admins who cover all scopes of the owner, and for keys that cover the
 * scope whose agent owns it. What is not for sale is read by all who may know of it.
 */
function readsContent({ sealed, owner_id, scopes }: Rights, asker: Asker): boolean {
  if (!sealed) return true
  if ('agent' in asker) return owner_id === agentOwner(asker.agent)
  const { key } = asker
  const agent = scopeOfOwner(owner_id)
  if (owner_id === key.key_id || (agent !== null && coversScope(key, agent))) return true
  // A buyer that was deleted since covers nothing.
  const patterns = scopes.length > 0 ? scopes : ['*']
  return hasRole(key, 'admin') && agent === null && patterns.every((pattern) => coversScope(key, pattern))
}
