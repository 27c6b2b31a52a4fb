import { env } from 'cloudflare:workers'
import type { SkillState, SkillVersion } from '../../src/contract/skill.ts'
import type { CiReport } from '../../src/contract/reports/skill-test.ts'
import { hashManifest, manifestSchema, type Manifest } from '../../src/skills/manifest/manifest.ts'
import { saveSkillTest } from '../../src/store/artifacts/skill-tests.ts'
import { registerSkill, skills, type NewSkill } from '../../src/artifacts/kinds.ts'
import type { RegisterResult } from '../../src/artifacts/registry.ts'
import { deployWith } from '../unit/skills/deploy-manifest.ts'
import { call, type Answer } from './http.ts'
import { freshId } from './reflexes.ts'

/** The document's example with tools of this deployment, an id of its own, and changes by path. */
export const buildManifest = (changes: Record<string, unknown> = {}): unknown =>
  deployWith({
    id: freshId('skill'),
    'preconditions.tools_available': ['act'],
    'preconditions.invariants': [],
    'plan.steps.0.tool': 'act',
    'plan.steps.1.tool': 'act_once',
    'plan.steps.2.tool': 'block',
    'plan.compensation.0.tool': 'act',
    'policy.deny_if': [],
    'tests.unit_cases': [],
    ...changes,
  })

export const register = (
  changes: Record<string, unknown> = {},
  { key, query = '' }: { key?: string; query?: string } = {},
): Promise<Answer> => call(`/v1/skills${query}`, { json: buildManifest(changes), ...(key === undefined ? {} : { key }) })

export async function registered(changes: Record<string, unknown> = {}, key?: string): Promise<string> {
  const { status, body, text } = await register(changes, key === undefined ? {} : { key })
  if (status !== 201) throw new Error(text)
  return String(body.id)
}

export const changeTo = (state: string, ref: string, { key, ...more }: { key?: string; reason?: string } = {}): Promise<Answer> =>
  call(`/v1/skills/${ref}/state`, { json: { state, ...more }, ...(key === undefined ? {} : { key }) })

type Draft = Partial<NewSkill> & { changes?: Record<string, unknown> }

const passingTest = ({ id, version }: Manifest, hash: string): CiReport => ({
  skill_id: id,
  version,
  hash,
  seed: '1',
  cases: 'declared',
  simulated: true,
  unit: { n: 1, passed: 1, required: 0.95 },
  fuzz: { n: 1, passed: 1, required: 0.85 },
  passed: true,
  failures: [],
})

/** Straight into the store, with its tests passed, as by the key `alice` of every scope. */
export async function put({ changes = {}, ...fields }: Draft = {}): Promise<RegisterResult<SkillVersion>> {
  const manifest = manifestSchema.parse(buildManifest(changes))
  const hash = await hashManifest(manifest)
  await saveSkillTest(env.DB, passingTest(manifest, hash), { by: 'alice', now: 1 })
  return registerSkill(env.DB, {
    manifest,
    hash,
    owner: 'alice',
    owner_id: 'key-of-alice',
    scopes: ['*'],
    provenance: { by: 'alice', scope: null },
    now: 1,
    ...fields,
  })
}

/** A skill that is in the store, brought to its state. */
export async function putVersion({ state = 'candidate', ...draft }: Draft & { state?: SkillState } = {}): Promise<SkillVersion> {
  const created = await put(draft)
  if (!created.ok) throw new Error(created.detail)
  if (state === 'candidate') return created.version
  const { id, version } = created.version
  const changed = await skills.setState(env.DB, { id, version, state, reason: null, now: 2 })
  if (!changed.ok) throw new Error(changed.detail)
  return changed.version
}

/** Gives a skill so many versions more, each a copy of its only one, in one statement. */
export async function copyVersion({ id }: { id: string }, count: number): Promise<void> {
  const versions = JSON.stringify(Array.from({ length: count }, (_, index) => `0.0.${index}`))
  const insert = `INSERT INTO artifact_versions
    SELECT kind, ?1, value, value, json_set(content, '$.version', value), hash, description, state, NULL, 0,
      iif(state = 'active', last + 1 + key, 0), provenance, 0, sharing, 0, 0, ''
    FROM artifact_versions AS one, (SELECT max(revision) AS last FROM artifact_versions), json_each(?2) WHERE one.kind = 'skill' AND one.id = ?1`
  await env.DB.prepare(insert).bind(id, versions).run()
}
