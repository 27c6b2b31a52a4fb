import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { withIso } from '../../base/time.ts'
import { newPromotion, promotion, promotionStatus, type NewPromotion, type Promotion } from '../../contract/control-plane/promotion.ts'
import { decisionReason } from '../../contract/control-plane/approval.ts'
import { skillName } from '../../contract/control-plane/policy.ts'
import type { CiReport } from '../../contract/reports/skill-test.ts'
import type { SkillVersion } from '../../contract/skill.ts'
import { testSkill } from '../../skills/ci/ci.ts'
import { manifestSchema, type Manifest } from '../../skills/manifest/manifest.ts'
import { decidePromotion, findPromotion, insertPromotion, listPromotions, promotedTo } from '../../store/artifacts/promotions.ts'
import { storeOf } from '../../store/store.ts'
import { demandReach } from '../artifacts/owner-access.ts'
import { skillAt } from '../artifacts/path.ts'
import { storedSuite } from '../artifacts/skill-tests.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { guard, idPath, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { byAge, paged } from '../../contract/paging.ts'
import { listed } from '../describe/paging.ts'
import { conflict, forbidden, invalid, notFound } from '../problems/refusals.ts'
import { openEnvironments } from './policy.ts'

const route = routes('Control plane')

/** The time for which a promotion can be approved: its tests are as old. */
const WITHIN_MS = 7 * 86_400_000
const SEED = '1'

const request = route('post /v1/promotions', 'requestPromotion', 'Promote a version of a skill to other environments', {
  description:
    'Runs the tests of the skill as if in each of `to_env`: a simulation on the control plane, which calls no tool and reaches no environment. If all pass, the promotion waits for the approval of a second person; after that, the policy allows this version there. ' +
    "The version must be active, and must be allowed in `from_env`. The key must cover all scopes of the skill's owner. Every promotion is kept, with its reports and who decided.",
  ...guard({ roles: ['operator'], body: 'json' }),
  request: {
    body: jsonRequest(newPromotion, { skill_id: 'network.block', version: '1.0.0', from_env: 'dev', to_env: ['staging'] }),
  },
  responses: { 201: json(promotion, 'The promotion: `pending`, or `failed` with the reports.'), ...problems(400, 404, 409, 413, 415) },
})

const list = route('get /v1/promotions', 'listPromotions', 'List promotions, newest first', {
  description: 'Of skills whose owners may act in a scope of the key.',
  ...guard({ roles: ['operator'] }),
  request: { query: byAge({ status: promotionStatus.optional(), skill_id: skillName.optional().describe('Only of this skill.') }) },
  responses: { 200: json(paged(promotion), 'A page.'), ...problems(400) },
})

const find = route('get /v1/promotions/{id}', 'getPromotion', 'Get a promotion', {
  ...guard({ roles: ['operator'] }),
  request: { params: idPath },
  responses: { 200: json(promotion, 'The promotion with its reports.'), ...problems(400, 404) },
})

const decision = {
  ...guard({ roles: ['operator'], body: 'optional' }),
  request: { params: idPath, body: jsonRequest(z.strictObject({ reason: decisionReason.optional() }), { reason: 'the reports are fine' }) },
  responses: { 200: json(promotion, 'The decided promotion.'), ...problems(400, 404, 409, 413, 415) },
}

const approve = route('post /v1/promotions/{id}/approve', 'approvePromotion', 'Approve a promotion', {
  ...decision,
  description:
    'From then on the policy allows the version in these environments. It takes two people: the key that requested it cannot approve it, nor can another key of the same name, not even as an admin. ' +
    'The first decision wins. The body is optional.',
})

const reject = route('post /v1/promotions/{id}/reject', 'rejectPromotion', 'Reject a promotion', {
  ...decision,
  description: 'The requester may reject it to withdraw it. The body is optional.',
})

type Called = Pick<Context<AuthEnv>, 'env' | 'var'>

export const promotionRoutes = resource()
  .openapi(request, async (c) => c.json(present(await requested(c, c.req.valid('json'))), 201))
  .openapi(list, async (c) => {
    const { cursor: before, ...query } = c.req.valid('query')
    const asked = { ...query, before, key_scopes: c.var.principal.scopes, now: Date.now() }
    const found = await listPromotions(storeOf(c.env), asked)
    return c.json(listed(found, { present, cursor: ({ created_at, id }) => ({ at: created_at, id }) }), 200)
  })
  .openapi(find, async (c) => c.json(present(await seen(c, c.req.valid('param').id)), 200))
  .openapi(approve, async (c) => {
    const found = await seen(c, c.req.valid('param').id)
    return c.json(present(await decided(c, found, { status: 'approved', reason: c.req.valid('json').reason ?? null })), 200)
  })
  .openapi(reject, async (c) => {
    const found = await seen(c, c.req.valid('param').id)
    return c.json(present(await decided(c, found, { status: 'rejected', reason: c.req.valid('json').reason ?? null })), 200)
  })

const present = ({ requested_key: _requested_key, decided_key: _decided_key, ...shown }: Promotion) =>
  withIso(shown, ['created_at', 'expires_at', 'decided_at'])

async function requested(c: Called, { skill_id, version, from_env, to_env: wanted, reason }: NewPromotion): Promise<Promotion> {
  const db = storeOf(c.env)
  const { principal } = c.var
  const found = (await skillAt(db, { id: skill_id, version }, principal)).version
  demandReach(principal, { kind: 'skill', ...found })
  const to_env = [...new Set(wanted)]
  await demandWay(c, found, { from_env, to_env })
  const reports = await reportsOf(c, found, to_env)
  const now = Date.now()
  const row = {
    id: crypto.randomUUID(),
    skill_id,
    version,
    hash: found.hash,
    from_env,
    to_env,
    reports,
    status: Object.values(reports).every(({ passed }) => passed) ? ('pending' as const) : ('failed' as const),
    requested_by: principal.name,
    requested_key: principal.key_id,
    request_reason: reason ?? null,
    created_at: now,
    expires_at: now + WITHIN_MS,
  }
  await insertPromotion(db, row)
  return { ...row, decided_by: null, decided_key: null, decided_at: null, reason: null }
}

/** Refuses a version that may not run in the first environment, or may in the others. */
async function demandWay(
  { env }: Called,
  { id, version, state }: SkillVersion,
  { from_env, to_env }: { from_env: string; to_env: string[] },
) {
  const name = `${id}@${version}`
  if (state !== 'active') throw conflict('skill-inactive', `${name} is ${state}: make it active first, which takes passing tests.`)
  const allowed = new Set([...openEnvironments(env), ...(await promotedTo(storeOf(env), { skill_id: id, version }))])
  if (!allowed.has(from_env))
    throw conflict('not-promoted', `${name} has not been promoted to ${from_env}, from which it was to be promoted.`)
  const already = to_env.filter((one) => allowed.has(one))
  if (already.length > 0) throw conflict('already-promoted', `${name} may run in ${already.join(' and ')} already.`)
}

async function reportsOf(
  c: Called,
  { manifest: stored, scopes }: SkillVersion,
  to_env: readonly string[],
): Promise<Record<string, CiReport>> {
  const parsed = manifestSchema.safeParse(stored)
  if (!parsed.success) throw invalid('The manifest is no longer valid: register a new version.')
  const suite = await storedSuite(c, parsed.data, scopes)
  const reports: Record<string, CiReport> = {}
  for (const env of to_env) reports[env] = await testIn(parsed.data, env, suite)
  return reports
}

/** The cases are those of the skill, and run as if in the environment. */
function testIn(manifest: Manifest, env: string, suite: Awaited<ReturnType<typeof storedSuite>>): Promise<CiReport> {
  const cases = suite.cases.map((one) => ({ ...one, place: { ...one.place, env: [env] } }))
  return testSkill(manifest, { ...suite, cases, seed: SEED })
}

/** Promotions outside the key's scopes read as not found. */
async function seen({ env, var: { principal } }: Called, id: string): Promise<Promotion> {
  const found = await findPromotion(storeOf(env), id, { key_scopes: principal.scopes, now: Date.now() })
  if (!found) throw notFound(`There is no promotion ${id} in the scopes of this key.`)
  return found
}

type Decision = { status: 'approved' | 'rejected'; reason: string | null }

async function decided({ env, var: { principal } }: Called, found: Promotion, { status, reason }: Decision): Promise<Promotion> {
  const db = storeOf(env)
  demandReach(principal, { kind: 'skill', ...(await skillAt(db, { id: found.skill_id, version: found.version }, principal)).version })
  const { key_id, name } = principal
  const answer = await decidePromotion(db, found, { status, by: { key_id, name }, reason, now: Date.now() })
  if (answer.ok) return answer.promotion
  if (answer.reason === 'own') throw forbidden(answer.detail)
  throw conflict(
    { decided: 'already-decided', expired: 'promotion-expired', skill_inactive: 'skill-inactive' }[answer.reason],
    answer.detail,
  )
}
