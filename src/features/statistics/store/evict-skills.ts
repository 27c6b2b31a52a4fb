import { and, count, countDistinct, eq, gt, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { EVICTED, sumStatistics } from './query.ts'
import { updateStage } from '../../../store/artifacts/change.ts'
import { artifacts, artifactVersions, skillTests } from '../../../store/artifacts/tables.ts'

const DAY_MS = 86_400_000
const WEEK_MS = 7 * DAY_MS
/** Uses in a week below which a mined skill is not worth its place in the bulletin. */
const LEAST_USES = 5
const MOST_FAILURES = 2
/** Versions that one sweep deprecates; the next one continues. */
const MOST_EVICTED = 50
/** Active versions of one owner from which on a warning is given. */
export const MANY_VERSIONS = 500

type Evicted = { id: string; version: string; reason: string }

/**
 * Deprecates mined skills that failed their tests twice, and those that were hardly used in the
 * last week, the first week of each left out. Skills that people wrote stay.
 */
export async function evictSkills(db: D1Database, now: number): Promise<Evicted[]> {
  const active = await minedSkills(db)
  const old = active.filter(({ state_at }) => state_at <= now - 2 * WEEK_MS)
  const uses = old.length === 0 ? new Map<string, number>() : await usesSince(db, now)
  const unused = new Set(old)
  const evicted: Evicted[] = []
  for (const skill of active) {
    if (evicted.length === MOST_EVICTED) break
    const { id, version, failures } = skill
    const used = unused.has(skill) ? (uses.get(id) ?? 0) : LEAST_USES
    const cause = causeOf(failures, used)
    if (cause === null) continue
    const reason = `${EVICTED}${cause}`
    const change = {
      kind: 'skill',
      id,
      version,
      from: ['active'],
      to: 'retired',
      reason,
      quota: null,
      by_proof: false,
      tested: false,
      forced: null,
      now,
    } as const
    if (await updateStage(db, change)) evicted.push({ id, version, reason })
  }
  return evicted
}

function causeOf(failures: number, used: number): string | null {
  if (failures >= MOST_FAILURES) return `it failed its tests ${failures} times in a row`
  if (used >= LEAST_USES) return null
  return `it was used ${used === 1 ? 'once' : `${used} times`} in the last week, and at least ${LEAST_USES} uses are needed`
}

async function minedSkills(db: D1Database) {
  const { kind, id, version, hash, state, state_at, content } = artifactVersions
  return drizzle(db)
    .select({ id, version, state_at, failures: sql<number>`coalesce(${skillTests.failed_in_a_row}, 0)` })
    .from(artifactVersions)
    .leftJoin(skillTests, and(eq(skillTests.skill_id, id), eq(skillTests.version, version), eq(skillTests.hash, hash)))
    .where(and(eq(kind, 'skill'), eq(state, 'active'), sql`json_array_length(${content}, '$.provenance.mined_from_traces') > 0`))
}

/** Runs and reused outputs of each skill on the last seven days, and today. */
async function usesSince(db: D1Database, now: number): Promise<Map<string, number>> {
  const today = Math.floor(now / DAY_MS) * DAY_MS
  const range = { bucket: 'day', since: today - WEEK_MS, until: now + 1, patterns: ['*'], keys: ['calls', 'reused'] } as const
  const uses = new Map<string, number>()
  for (const { series, value } of await sumStatistics(db, { ...range, family: 'skill', by: 'label' }))
    uses.set(series, (uses.get(series) ?? 0) + value)
  return uses
}

/** Owners with many active skills: models see the best five of them, and rarely the others. */
export const crowdedOwners = (db: D1Database) =>
  drizzle(db)
    .select({ owner: artifacts.owner, owner_id: artifacts.owner_id, active: count(), skills: countDistinct(artifactVersions.id) })
    .from(artifactVersions)
    .innerJoin(artifacts, and(eq(artifacts.kind, artifactVersions.kind), eq(artifacts.id, artifactVersions.id)))
    .where(and(eq(artifactVersions.kind, 'skill'), eq(artifactVersions.state, 'active')))
    .groupBy(artifacts.owner_id)
    .having(gt(count(), MANY_VERSIONS))
