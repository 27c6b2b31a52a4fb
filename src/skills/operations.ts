import { z } from 'zod'
import { operations } from '../contract/operation.ts'
import { scopePath } from '../contract/operations/shared.ts'
import { skillPath } from '../contract/operations/skills.ts'
import { described, plainSchema } from '../contract/plain-schema.ts'
import { skillTest } from '../contract/reports/skill-test.ts'
import { proposalResult, registeredSkill } from '../contract/skill.ts'
import { proposeSkillInput } from './asp/parse.ts'
import { unitCase } from './ci/suite.ts'
import { manifestSchema } from './manifest/manifest.ts'

const operators = operations({ tag: 'Skills', roles: ['operator'] })

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

/** Selects the mutations of a test that names no seed. */
export const SEED = '1'

export const runTest = operators('post /v1/skills/{ref}/test', 'testSkill', 'Test a skill', {
  description:
    'Runs the unit cases of the manifest and seeded mutations of them through the gate and the plan runner, on recorded or made-up outputs: no tool is called. ' +
    'A manifest without unit cases is tested on generated inputs, in situations where its conditions hold. `cases` are those that the manifest names in `tests.unit_cases`; they are kept for later tests. ' +
    'The report replaces the last one of the same manifest. For the owner and admins.',
  params: skillPath,
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
