import { and, asc, desc, eq, gt, inArray, or, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import type { Page } from '../contract/scope-api.ts'
import type { SkillState, SkillVersion } from '../contract/skill.ts'
import { bytesOf, keysOfPage, pageOf } from './page-by-bytes.ts'
import { skills, skillVersions } from './schema.ts'
import { patternsSeenBy, readable } from './skill-scopes.ts'

const listed = {
  id: skillVersions.id,
  version: skillVersions.version,
  hash: skillVersions.hash,
  owner: skills.owner,
  owner_id: skills.owner_id,
  scopes: skills.scopes,
  state: skillVersions.state,
  state_reason: skillVersions.state_reason,
  state_at: skillVersions.state_at,
  provenance: skillVersions.provenance,
  created_at: skillVersions.created_at,
}
const whole = { ...listed, manifest: skillVersions.manifest }
const described = sql<string>`coalesce(${skillVersions.manifest}->>'description', '')`
const ofVersion = eq(skills.id, skillVersions.id)

export type ListedSkill = Omit<SkillVersion, 'manifest'> & { description: string }
export type SkillVersionSummary = Pick<SkillVersion, 'version' | 'hash' | 'state' | 'state_reason' | 'state_at' | 'created_at'>

/**
 * Unless a version is named, the newest active one; where none is active, the newest; of those that `visible` holds of, all
 * unless given (skill-scopes.ts).
 */
export async function findSkill(db: D1Database, id: string, version?: string, visible?: SQL): Promise<SkillVersion | null> {
  const wanted = and(eq(skillVersions.id, id), version === undefined ? undefined : eq(skillVersions.version, version), visible)
  const isActive = sql`${skillVersions.state} = 'active'`
  const found = await drizzle(db)
    .select(whole)
    .from(skillVersions)
    .innerJoin(skills, ofVersion)
    .where(wanted)
    .orderBy(desc(isActive), desc(skillVersions.precedence))
    .limit(1)
    .get()
  return found ?? null
}

/** Newest first. */
export async function listSkillVersions(db: D1Database, id: string, visible?: SQL): Promise<SkillVersionSummary[]> {
  const { version, hash, state, state_reason, state_at, created_at, precedence } = skillVersions
  return drizzle(db)
    .select({ version, hash, state, state_reason, state_at, created_at })
    .from(skillVersions)
    .innerJoin(skills, ofVersion)
    .where(and(eq(skillVersions.id, id), visible))
    .orderBy(desc(precedence))
}

/** `q` is looked for in ids and descriptions, in capitals or not; `cursor` is the last id of the page before. */
export type SkillQuery = {
  q?: string | undefined
  state?: SkillState | undefined
  cursor?: string | undefined
  limit: number
  /** Whose scopes the asking key has. */
  key_scopes: readonly string[]
}

/** By id, of each the newest version in `state`; without a state what `findSkill` gives. */
export async function listSkills(db: D1Database, { q, state, cursor, limit, key_scopes }: SkillQuery): Promise<Page<ListedSkill>> {
  const patterns = await patternsSeenBy(db, key_scopes)
  const newest = (wanted?: SkillState) => newestOf(patterns, wanted)
  const shown = state === undefined ? sql`coalesce(${newest('active')}, ${newest()})` : newest(state)
  const isShown = and(eq(skillVersions.id, skills.id), eq(skillVersions.precedence, shown))
  const where = and(
    cursor === undefined ? undefined : gt(skills.id, cursor),
    // D1 takes no LIKE pattern beyond 50 bytes.
    q === undefined ? undefined : or(contains(sql`${skills.id}`, q), contains(described, q)),
  )
  const bytes = bytesOf(skills.scopes, described, skillVersions.state_reason, skillVersions.provenance)
  const from = sql`${skills} INNER JOIN ${skillVersions} ON ${isShown}`
  const rows = await drizzle(db)
    .select({ ...listed, description: described, bytes })
    .from(skills)
    .innerJoin(skillVersions, isShown)
    .where(inArray(skills.id, keysOfPage({ from, where, key: skills.id, bytes, limit, rising: true })))
    .orderBy(asc(skills.id))
  const { items, more } = pageOf(rows, limit)
  return { items, next_cursor: more ? (items.at(-1)?.id ?? null) : null }
}

/** Null where a key may read none of them. */
function newestOf(patterns: readonly string[] | null, state?: SkillState): SQL {
  const inState = state === undefined ? sql.empty() : sql`AND other.state = ${state}`
  const visible = readable(patterns, sql`other.sharing`)
  return sql`(SELECT max(precedence) FROM skill_versions AS other WHERE other.id = ${skills.id} ${inState} AND ${visible})`
}

const contains = (column: SQL, text: string): SQL => sql`instr(lower(${column}), lower(${text})) > 0`
