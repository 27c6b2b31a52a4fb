import { z } from 'zod'
import { operations } from '../contract/operation.ts'
import { refPath, scopePath, toolPage } from '../contract/operations/shared.ts'
import { paged, pageLimit, search } from '../contract/paging.ts'
import { described, plainSchema } from '../contract/plain-schema.ts'
import { skillTest } from '../contract/reports/skill-test.ts'
import {
  bulletin,
  listedSkill,
  proposalResult,
  registeredSkill,
  skill,
  skillState,
  skillVersion as changedSkill,
} from '../contract/skill.ts'
import { proposeSkillInput } from './asp/parse.ts'
import { unitCase } from './ci/suite.ts'
import { manifestSchema } from './manifest/manifest.ts'
import { skillId, skillVersion } from './manifest/names.ts'

const operation = operations({ tag: 'Skills', roles: ['viewer'] })
const operators = operations({ tag: 'Skills', roles: ['operator'] })

const VISIBLE =
  'A key reads the skills whose owners may act in a scope that it covers; of all others only the versions whose manifest says `"scope": "org"`.'
const params = refPath({
  kind: 'skill',
  without: 'the newest active version, or the newest one if none is active',
  id: skillId,
  version: skillVersion,
})

export const list = operation('get /v1/skills', 'listSkills', 'List skills, by id', {
  description:
    'The newest active version of each, or the newest if none is active, without its manifest; with `state`, the newest one in that state. ' +
    VISIBLE,
  query: z.object({ q: search, state: skillState.optional(), limit: pageLimit(1000), cursor: skillId.optional() }),
  answers: { 200: [paged(listedSkill), 'A page.'] },
  mcp: {
    name: 'list_skills',
    title: 'Skills',
    description: 'The newest version of each skill.',
    input: { q: z.string().max(200).optional(), state: z.string().max(64).optional(), ...toolPage },
  },
})

export const schema = operation('get /v1/skills/schema', 'getSkillSchema', "Get a manifest's JSON Schema", {
  description: 'The structure of a manifest, for editors and authors. Registration also checks that its parts fit together.',
  answers: { 200: [z.record(z.string(), z.unknown()), 'JSON Schema, draft 2020-12.'] },
})

export const find = operation('get /v1/skills/{ref}', 'getSkill', 'Get a skill', {
  description: VISIBLE,
  params,
  answers: { 200: [skill, 'The version with its manifest, and a list of all versions.'] },
  problems: [404],
})

const exampleManifest: z.input<typeof manifestSchema> = {
  id: 'network.block',
  version: '1.0.0',
  owner: 'team-security',
  description: 'Blocks an address that attacks',
  signature: {
    inputs: [
      { name: 'address', type: 'string', required: true },
      { name: 'reason', type: 'string', required: true },
    ],
  },
  plan: {
    budget: { max_cost_usd: 0.01, max_latency_ms: 5000 },
    steps: [{ tool: 'block', args: { address: '{{address}}', reason: '{{reason}}' }, timeout_ms: 3000 }],
  },
  activation: { keywords_any: ['block', 'attacker'], score_weights: { keyword_hit: 1 }, tau: 1 },
  policy: { allow_roles: ['operator'] },
}

export const register = operators('post /v1/skills', 'registerSkill', 'Register a version of a skill', {
  description:
    'The body is its manifest, with an `id` and a semantic `version`. A version never changes: the same content again changes nothing, other content under the same version is ' +
    'rejected. It is a candidate until its state is changed. The whole manifest is checked, and all errors are returned at once, including tools that no ' +
    'agent of this deployment has. Tools whose names begin with `http.` or `mcp.` belong to scopes, which may have none yet: the gate refuses where a scope lacks them, and names what to declare. If scopes of your key have the `http.` tools, the arguments must fit those of one of them. Only the owner and admins add versions.',
  query: z.object({
    tools: z.enum(['known', 'any']).default('known').meta({
      description: '`any`: accept tools and probes that do not exist. The gate refuses to run the skill until they do.',
    }),
  }),
  body: described<z.input<typeof manifestSchema>>(plainSchema(manifestSchema)),
  example: exampleManifest,
  answers: { 200: [registeredSkill, 'It existed already and is unchanged.'], 201: [registeredSkill, 'The new version.'] },
  problems: [409],
})

export const setState = operators('post /v1/skills/{ref}/state', 'setSkillState', "Change a version's state", {
  description:
    'For the owner and admins; for a version that an agent made, the operators of its scope. A candidate becomes `active` or `deprecated`, an active version `deprecated`, and a deprecated ' +
    'one `active` again; none becomes a candidate. Name the version if there are several. The scopes follow within seconds. ' +
    'A version becomes active only if it passed its tests, which are run first if they never were. `force` with a `reason` activates it anyway: both are kept in `provenance`.',
  params,
  body: z.strictObject({ state: skillState, reason: z.string().min(1).max(1000).optional(), force: z.boolean().default(false) }),
  example: { state: 'active', reason: 'it is needed' },
  answers: { 200: [changedSkill, 'The changed version.'] },
  problems: [404, 409],
})

/** Selects the mutations of a test that names no seed. */
export const SEED = '1'

export const runTest = operators('post /v1/skills/{ref}/test', 'testSkill', 'Test a skill', {
  description:
    'Runs the unit cases of the manifest and seeded mutations of them through the gate and the plan runner, on recorded or made-up outputs: no tool is called. ' +
    'A manifest without unit cases is tested on generated inputs, in situations where its conditions hold. `cases` are those that the manifest names in `tests.unit_cases`; they are kept for later tests. ' +
    'The report replaces the last one of the same manifest. For the owner and admins.',
  params,
  body: z.strictObject({
    cases: z
      .array(unitCase.required({ name: true }))
      .max(200)
      .default([]),
    seed: z.string().min(1).max(64).default(SEED).meta({ description: 'Selects the mutations.' }),
  }),
  recursive: true,
  takes: 'optional',
  example: { seed: '2' },
  answers: { 200: [skillTest, 'The report, passed or not.'] },
  problems: [404],
})

export const findTest = operation('get /v1/skills/{ref}/test', 'getSkillTest', "Get a skill's latest test", {
  params,
  answers: { 200: [skillTest, 'The report of exactly this manifest.'] },
  problems: [404],
})

const inScope = operations({ tag: 'Skills', roles: ['publisher'], scoped: true })

export const propose = inScope('post /v1/scopes/{scope}/skills/propose', 'proposeSkill', 'Propose to run a skill', {
  description:
    "The gate decides, based on the manifest, the scope's settings and the roles of the key: compat, preconditions, score, policy, in this order. An allowed proposal runs immediately, " +
    'and the response holds its result. A `traceparent` header sets the trace of the run; otherwise a new one is created. Use `trace_id` to find the run in the log.',
  params: scopePath,
  body: proposeSkillInput.extend({ dry_run: z.boolean().default(false).describe('Only evaluates the gate; nothing runs.') }),
  recursive: true,
  example: { skill_id: 'incident.open', inputs: { title: 'a burst of failed logins' }, why: 'open an incident' },
  answers: { 200: [proposalResult, 'The decision and the result.'] },
})

export const showBulletin = inScope('get /v1/scopes/{scope}/bulletin', 'getBulletin', 'Show the bulletin of skills a model would get', {
  description:
    "At most five active skills that fit the scope and the conversation, best first, based on the scope's settings `project`, `env`, `toolset`, `repo` and `goal_labels`, on the `entity_types` of the events in its context, and on recently successful runs.",
  roles: ['viewer'],
  params: scopePath,
  query: z.object({
    text: z.string().max(10_000).default('').meta({ description: 'Text of the conversation.', example: 'deploy the latest to staging' }),
  }),
  answers: { 200: [bulletin, 'The bulletin.'] },
})
