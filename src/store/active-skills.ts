import { asc, eq, gt, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { matchesScope } from '../protocol/scope-pattern.ts'
import type { SkillChanges, StoredManifest } from '../protocol/skill.ts'
import { skills, skillVersions } from './schema.ts'

/** A manifest is up to 128 kB, more with its defaults filled in. */
const PAGE = 50

/**
 * Which versions a scope may show and run became active since a revision, or ceased to be, in the order of these changes; since 0, all active ones. One
 * that changes while pages are read comes again at the end, so that a copy is right once there is no more. Where nothing changed, this reads no row.
 */
export async function activeSkills(
  db: D1Database,
  { scope, since_revision = 0, limit = PAGE }: { scope: string; since_revision?: number; limit?: number },
): Promise<SkillChanges> {
  const { id, version, hash, revision, state, manifest } = skillVersions
  const rows = await drizzle(db)
    .select({
      change: { id, version, hash, manifest: sql<StoredManifest | null>`CASE ${state} WHEN 'active' THEN ${manifest} END`.mapWith(parsed) },
      revision,
      scopes: skills.scopes,
    })
    .from(skillVersions)
    .innerJoin(skills, eq(skills.id, id))
    .where(gt(revision, since_revision))
    .orderBy(asc(revision))
    .limit(limit + 1)
  const page = rows.slice(0, limit)
  const mine = page.filter(({ scopes }) => scopes.some((pattern) => matchesScope(pattern, scope)))
  return {
    changes: mine.map(({ change }) => change),
    revision: page.at(-1)?.revision ?? since_revision,
    more: rows.length > limit,
  }
}

const parsed = (text: string): StoredManifest => JSON.parse(text)
