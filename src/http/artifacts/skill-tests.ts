import type { Context } from 'hono'
import { withIso } from '../../base/time.ts'
import type { JsonFields } from '../../base/json.ts'
import type { SkillVersion } from '../../contract/skill.ts'
import { fromZod } from '../../contract/problem.ts'
import { testSkill } from '../../skills/ci/ci.ts'
import { suiteOf, type SentCase } from '../../skills/ci/suite.ts'
import { manifestSchema, type Manifest } from '../../skills/manifest/manifest.ts'
import { findTest } from '../../contract/operations/skills.ts'
import { runTest, SEED } from '../../skills/operations.ts'
import { findSkillTest, saveSkillCases, saveSkillTest, skillCasesNamed, type SkillTest } from '../../store/artifacts/skill-tests.ts'
import { storeOf } from '../../store/store.ts'
import { factsOf } from '../../tools/tool-facts.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { resource, serve } from '../describe/operation.ts'
import { conflict, invalid, notFound } from '../problems/refusals.ts'
import { demandControl } from './owner-access.ts'
import { skillAt } from './path.ts'
import { knownInputs } from './tool-inputs.ts'

export const skillTestRoutes = resource().openapiRoutes([
  serve(runTest, async (c, { params: { ref }, body }) => {
    const { version: found } = await skillAt(storeOf(c.env), ref, c.var.principal)
    demandControl(c.var.principal, { kind: 'skill', ...found })
    return presented(await testVersion(c, found, body))
  }),
  serve(findTest, async (c, { params: { ref } }) => {
    const db = storeOf(c.env)
    const { version: found } = await skillAt(db, ref, c.var.principal)
    const test = await testOf(db, found)
    if (!test) throw notFound(`${found.id}@${found.version} has not been tested.`)
    return presented(test)
  }),
])

const presented = (test: SkillTest) => withIso(test, ['tested_at'])

const testOf = (db: D1Database, { id, version, hash }: SkillVersion): Promise<SkillTest | null> =>
  findSkillTest(db, { skill_id: id, version, hash })

type Sent = { cases: readonly (SentCase & { name: string })[]; seed: string }

/** Tests a stored version and keeps the report. */
async function testVersion(c: Pick<Context<AuthEnv>, 'env' | 'var'>, found: SkillVersion, { cases, seed }: Sent): Promise<SkillTest> {
  const db = storeOf(c.env)
  const parsed = manifestSchema.safeParse(found.manifest)
  if (!parsed.success)
    throw invalid(`The manifest of ${found.id}@${found.version} is no longer valid: register a new version.`, fromZod(parsed.error))
  const { data: manifest } = parsed
  const names = namesIn(manifest)
  const unknown = cases.findIndex(({ name }) => !names.includes(name))
  if (unknown >= 0) {
    const message = `is not in tests.unit_cases of ${found.id}@${found.version}`
    throw invalid(`The case ${cases[unknown]?.name} ${message}.`, [{ path: `cases[${unknown}].name`, message }])
  }
  await saveSkillCases(db, found.id, cases as readonly ({ name: string } & JsonFields)[])
  const report = await testSkill(manifest, { ...(await storedSuite(c, manifest, found.scopes)), seed })
  return saveSkillTest(db, report, { by: c.var.principal.name, now: Date.now() })
}

/** The suite of a manifest, with the cases that were sent for it, and the tools of its scopes. */
export async function storedSuite(c: Pick<Context<AuthEnv>, 'env' | 'var'>, manifest: Manifest, scopes: readonly string[]) {
  const sent = (await skillCasesNamed(storeOf(c.env), manifest.id, namesIn(manifest))) as SentCase[]
  const inputs = await knownInputs(c.env, manifest, scopes)
  return suiteOf(manifest, { sent, inputs, tools: factsOf(Object.assign({}, ...c.var.agents.agents.map((agent) => agent.tools))) })
}

const namesIn = ({ tests }: Manifest): string[] => tests.unit_cases.filter((one) => typeof one === 'string')

/** Throws unless the version passed its tests, which are run if they never were. */
export async function demandTests(c: Pick<Context<AuthEnv>, 'env' | 'var'>, found: SkillVersion): Promise<void> {
  const test = (await testOf(storeOf(c.env), found)) ?? (await testVersion(c, found, { cases: [], seed: SEED }))
  if (test.passed) return
  const { unit, fuzz, failures } = test
  const [first] = failures
  throw conflict(
    'not-tested',
    `${found.id}@${found.version} failed its tests: ${unit.passed} of ${unit.n} unit cases and ${fuzz.passed} of ${fuzz.n} mutations passed` +
      `${first ? `; ${first.name}: ${first.reason}` : ''}. Correct it and register it as a new version, send the missing cases to ` +
      `POST /v1/skills/${found.id}@${found.version}/test, or activate it with "force": true and a reason.`,
  )
}
