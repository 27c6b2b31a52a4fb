import { lookUpSkill } from '../../../artifacts/look-up.ts'
import type { PolicyQuestion, PolicyVerdict } from '../../../contract/policy.ts'
import { check } from '../operations/promotions.ts'
import type { Principal } from '../../../contract/principal.ts'
import type { Env } from '../../../env.ts'
import { judgePolicy } from '../../../skills/gate/judge-policy.ts'
import { manifestSchema } from '../../../skills/manifest/manifest.ts'
import { promotedTo } from '../store/promotions.ts'
import { storeOf } from '../../../store/store.ts'
import { resource, serve } from '../../../http/describe/operation.ts'

export const policyRoutes = resource().openapiRoutes([serve(check, (c, { body }) => verdictOn(c.env, c.var.principal, body))])

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
