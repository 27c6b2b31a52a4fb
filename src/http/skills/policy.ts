import { lookUpSkill } from '../../artifacts/look-up.ts'
import { policyQuestion, policyVerdict, type PolicyQuestion, type PolicyVerdict } from '../../contract/control-plane/policy.ts'
import type { Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { judgePolicy } from '../../skills/gate/judge-policy.ts'
import { manifestSchema } from '../../skills/manifest/manifest.ts'
import { promotedTo } from '../../store/artifacts/promotions.ts'
import { storeOf } from '../../store/store.ts'
import { guard, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'

const route = routes('Control plane')

const check = route('post /v1/policy/check', 'checkPolicy', 'Ask if a version of a skill may run', {
  description:
    "`needs_promotion`: the version is a candidate, or it was not promoted to an environment that needs a promotion. `deny`: it is deprecated, is for another environment or project, the roles are not among the manifest's, or one of " +
    'the given inputs is not allowed. Approvals, residency, and conditions that read the blackboard are left to the asker. A skill that the key may not read is treated as an unknown one: allowed in open environments only ' +
    '(`REFLEX_OPEN_ENVIRONMENTS`, by default `dev`). Nothing is stored.',
  ...guard({ roles: ['viewer'], body: 'json' }),
  request: {
    body: jsonRequest(policyQuestion, { skill_id: 'network.block', version: '1.0.0', project: 'shop', env: 'prod', roles: ['operator'] }),
  },
  responses: { 200: json(policyVerdict, 'The verdict.'), ...problems(400, 413, 415) },
})

export const policyRoutes = resource().openapi(check, async (c) =>
  c.json(await verdictOn(c.env, c.var.principal, c.req.valid('json')), 200),
)

async function verdictOn(env: Env, key: Principal, question: PolicyQuestion): Promise<PolicyVerdict> {
  const db = storeOf(env)
  const { skill_id, version } = question
  const { version: found = null } = (await lookUpSkill(db, { id: skill_id, version }, { key })) ?? {}
  const parsed = found && manifestSchema.safeParse(found.manifest)
  if (parsed?.success === false) return { verdict: 'deny', reason: `the manifest of ${skill_id}@${version} is no longer valid` }
  return judgePolicy(question, {
    skill: found && parsed ? { manifest: parsed.data, state: found.state } : null,
    open: openEnvironments(env),
    promoted: found ? await promotedTo(db, question) : [],
    now: Date.now(),
  })
}

/** Environments that take an active version without a promotion. */
export const openEnvironments = ({ REFLEX_OPEN_ENVIRONMENTS: text = 'dev' }: Pick<Env, 'REFLEX_OPEN_ENVIRONMENTS'>): string[] =>
  text.split(',').flatMap((name) => (name.trim() === '' ? [] : [name.trim()]))
