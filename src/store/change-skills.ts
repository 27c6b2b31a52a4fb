import { and, eq, inArray, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { Refused } from '../contract/scope-api.ts'
import { precedenceOf } from '../contract/semantic-version.ts'
import { statesAfter, statesBefore, type SkillState, type SkillVersion } from '../contract/skill.ts'
import { isHeldBy, refusalOf, type Holder } from './holder.ts'
import { skills, skillVersions } from './schema.ts'
import { insertPatterns } from './skill-scopes.ts'
import { findSkill } from './skills.ts'

export const MOST_SKILL_VERSIONS = 1000

/** `may_take_over`: an admin adds versions to what another owns, who stays its owner. `now` in ms. */
export type NewSkillVersion = Pick<SkillVersion, 'manifest' | 'hash' | 'owner' | 'owner_id' | 'scopes' | 'provenance'> & {
  now: number
  may_take_over?: boolean
}
/** `created` is false where the version was there already, with the same content. */
export type RegisteredSkill =
  | { ok: true; version: SkillVersion; created: boolean }
  | Refused<'not_owner' | 'other_content' | 'too_many_versions'>

/**
 * Adds a version as a candidate. What a version holds never changes: of several that come at once with different content one is taken. A skill belongs to
 * who registered it first, for good; an admin who adds to it has to cover all its scopes.
 */
export async function registerSkill(db: D1Database, draft: NewSkillVersion): Promise<RegisteredSkill> {
  const { id, version } = draft.manifest
  const holder = (await drizzle(db).select().from(skills).where(eq(skills.id, id)).get()) ?? draft
  const refusal = refusalOf(`skill ${id}`, draft, holder)
  if (refusal !== null) return notOwner(refusal)
  const inserted = await insertVersion(db, draft, holder)
  const found = await findSkill(db, id, version)
  if (found) return asRegistered(draft, found, inserted)
  // Either somebody registered this id between the look and the transaction, or there is no room: its holder never changes, so that looking once more says which.
  const now = await drizzle(db).select().from(skills).where(eq(skills.id, id)).get()
  if (!now) throw new Error(`the skill ${id} is not there although it was written`)
  if (!isHeldBy(now, holder)) return registerSkill(db, draft)
  const detail = `The skill ${id} has ${MOST_SKILL_VERSIONS} versions, and no room for more. Register it under another id to go on.`
  return { ok: false, reason: 'too_many_versions', detail }
}

/** What one owner may have active at once: every scope that may run them keeps a copy. */
const MOST_ACTIVE = 1000
const MOST_ACTIVE_BYTES = 16_000_000

/** `quota`: what one owner may have active; given by tests. */
export type SkillStateChange = {
  id: string
  version: string
  state: SkillState
  reason: string | null
  now: number
  quota?: { versions: number; bytes: number }
}

/** The version in its new state, from one that it may follow. In the state that it is in already, it stays as it is. */
export async function setSkillState(
  db: D1Database,
  { id, version, state, reason, now, quota = { versions: MOST_ACTIVE, bytes: MOST_ACTIVE_BYTES } }: SkillStateChange,
): Promise<{ ok: true; version: SkillVersion } | Refused<'not_found' | 'not_allowed' | 'too_many_active'>> {
  const next = sql`(SELECT max(revision) + 1 FROM skill_versions)`
  const revision = sql`CASE WHEN 'active' IN (${state}, ${skillVersions.state}) THEN ${next} ELSE ${skillVersions.revision} END`
  const mayFollow = inArray(skillVersions.state, statesBefore(state))
  const changed = await drizzle(db)
    .update(skillVersions)
    .set({ state, state_reason: reason, state_at: now, revision })
    .where(
      and(eq(skillVersions.id, id), eq(skillVersions.version, version), mayFollow, state === 'active' ? hasRoom(id, quota) : undefined),
    )
    .returning({ id: skillVersions.id })
  const found = await findSkill(db, id, version)
  if (!found) return { ok: false, reason: 'not_found', detail: `There is no skill ${id}@${version}.` }
  if (changed.length > 0 || found.state === state) return { ok: true, version: found }
  if (statesBefore(state).includes(found.state)) return { ok: false, reason: 'too_many_active', detail: noRoom(found, quota) }
  const allowed = statesAfter(found.state).join(' or ')
  return { ok: false, reason: 'not_allowed', detail: `${id}@${version} is ${found.state}, and can only become ${allowed}, not ${state}.` }
}

/** Of the owner of this skill, with the version that is about to become active. */
const hasRoom = (id: string, { versions, bytes }: { versions: number; bytes: number }): SQL => sql`(
  SELECT count(*) < ${versions} AND coalesce(sum(octet_length(other.manifest)), 0) + octet_length(${skillVersions.manifest}) <= ${bytes}
  FROM skills AS owned CROSS JOIN skill_versions AS other ON other.id = owned.id AND other.state = 'active'
  WHERE owned.owner_id = (SELECT owner_id FROM skills WHERE id = ${id}))`

const noRoom = ({ id, version, owner }: SkillVersion, { versions, bytes }: { versions: number; bytes: number }): string =>
  `${id}@${version} is not activated: ${owner} may have at most ${versions} active versions, ${bytes} bytes of manifests in all. ` +
  `Deprecate one that is no longer needed, by POST /v1/skills/ID@VERSION/state {"state": "deprecated"}, then activate this one.`

async function insertVersion(db: D1Database, draft: NewSkillVersion, holder: Holder): Promise<boolean> {
  const { manifest, hash, owner, owner_id, scopes, provenance, now } = draft
  const { id, version } = manifest
  const database = drizzle(db)
  // The columns in the schema's order.
  const row = sql`SELECT ${id}, ${version}, ${precedenceOf(version)}, ${JSON.stringify(manifest)}, ${hash}, 'candidate', NULL, ${now}, 0,
      ${JSON.stringify(provenance)}, ${now}, ${manifest.scope ?? 'project'}
    WHERE EXISTS (SELECT 1 FROM skills WHERE id = ${id} AND owner_id = ${holder.owner_id} AND scopes = ${JSON.stringify(holder.scopes)})
      AND (SELECT count(*) FROM skill_versions WHERE id = ${id}) < ${MOST_SKILL_VERSIONS}`
  const [, , rows] = await database.batch([
    database.insert(skills).values({ id, owner, owner_id, scopes, created_at: now }).onConflictDoNothing(),
    insertPatterns(db, id),
    database.insert(skillVersions).select(row).onConflictDoNothing().returning({ version: skillVersions.version }),
  ])
  return rows.length > 0
}

function asRegistered(draft: NewSkillVersion, found: SkillVersion, inserted: boolean): RegisteredSkill {
  const refusal = refusalOf(`skill ${found.id}`, draft, found)
  if (refusal !== null) return notOwner(refusal)
  if (inserted || found.hash === draft.hash) return { ok: true, version: found, created: inserted }
  const detail = `There is a ${found.id}@${found.version} already, with other content, and a version never changes. Register this one under a higher version.`
  return { ok: false, reason: 'other_content', detail }
}

const notOwner = (refusal: string): Refused<'not_owner'> => ({ ok: false, reason: 'not_owner', detail: `${refusal} Take another id.` })
