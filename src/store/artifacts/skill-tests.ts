import { and, eq, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { jsonChunks, type JsonFields } from '../../base/json.ts'
import type { CiReport } from '../../contract/reports/skill-test.ts'
import { readableBy } from './patterns.ts'
import { artifacts, artifactVersions, skillCases, skillTests } from './tables.ts'

export type SkillTest = CiReport & { failed_in_a_row: number; by: string; tested_at: number }
type Tested = Pick<CiReport, 'skill_id' | 'version' | 'hash'>

/** Replaces the report of the same manifest. `now` in ms. */
export async function saveSkillTest(db: D1Database, report: CiReport, { by, now }: { by: string; now: number }): Promise<SkillTest> {
  const { skill_id, version, hash, passed } = report
  const failed_in_a_row = passed ? 0 : 1
  const [row] = await drizzle(db)
    .insert(skillTests)
    .values({ skill_id, version, hash, passed, failed_in_a_row, report, by, tested_at: now })
    .onConflictDoUpdate({
      target: [skillTests.skill_id, skillTests.version, skillTests.hash],
      set: {
        passed,
        failed_in_a_row: passed ? 0 : sql`${skillTests.failed_in_a_row} + 1`,
        report,
        by,
        tested_at: now,
      },
    })
    .returning({ failed_in_a_row: skillTests.failed_in_a_row })
  return { ...report, failed_in_a_row: row?.failed_in_a_row ?? failed_in_a_row, by, tested_at: now }
}

/** The latest test of exactly this manifest, or null. */
export async function findSkillTest(db: D1Database, { skill_id, version, hash }: Tested): Promise<SkillTest | null> {
  const row = await drizzle(db)
    .select()
    .from(skillTests)
    .where(and(eq(skillTests.skill_id, skill_id), eq(skillTests.version, version), eq(skillTests.hash, hash)))
    .get()
  return row ? { ...row.report, simulated: true, failed_in_a_row: row.failed_in_a_row, by: row.by, tested_at: row.tested_at } : null
}

const latest = (condition: SQL): SQL => sql`EXISTS (SELECT 1 FROM skill_tests AS tests WHERE tests.skill_id = artifact_versions.id
  AND tests.version = artifact_versions.version AND tests.hash = artifact_versions.hash AND ${condition})`

/** True for versions whose latest test passed. */
export const hasPassed = latest(sql`tests.passed`)
export const hasFailed = latest(sql`NOT tests.passed`)

/** The newest passed test of each skill that the key may read, in ms, by the skill's id. */
export async function lastPasses(db: D1Database, scopes: readonly string[]): Promise<Map<string, number>> {
  const { id, kind, version, hash } = artifactVersions
  const rows = await drizzle(db)
    .select({ id, at: sql<number>`max(${skillTests.tested_at})` })
    .from(skillTests)
    .innerJoin(
      artifactVersions,
      and(eq(kind, 'skill'), eq(id, skillTests.skill_id), eq(version, skillTests.version), eq(hash, skillTests.hash)),
    )
    .innerJoin(artifacts, and(eq(artifacts.kind, kind), eq(artifacts.id, id)))
    .where(and(skillTests.passed, await readableBy(db, scopes)))
    .groupBy(id)
  return new Map(rows.map((row) => [row.id, row.at]))
}

/** Adds cases, or replaces the cases of the same name. */
export async function saveSkillCases(db: D1Database, skill_id: string, cases: readonly ({ name: string } & JsonFields)[]): Promise<void> {
  const chunks = jsonChunks(cases.map((one) => JSON.stringify(one)))
  if (chunks.length > 0) await db.batch(chunks.map((chunk) => db.prepare(UPSERT_CASES).bind(chunk, skill_id)))
}

const UPSERT_CASES = `INSERT INTO skill_cases (skill_id, name, content) SELECT ?2, value->>'name', value FROM json_each(?1) WHERE true
  ON CONFLICT (skill_id, name) DO UPDATE SET content = excluded.content`

export async function skillCasesNamed(db: D1Database, skill_id: string, names: readonly string[]): Promise<JsonFields[]> {
  if (names.length === 0) return []
  const isNamed = sql`${skillCases.name} IN (SELECT value FROM json_each(${JSON.stringify(names)}))`
  const rows = await drizzle(db)
    .select({ content: skillCases.content })
    .from(skillCases)
    .where(and(eq(skillCases.skill_id, skill_id), isNamed))
  return rows.map(({ content }) => content)
}
