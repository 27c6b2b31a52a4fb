import { resource, serve } from '../../../http/describe/operation.ts'
import { policyRoutes, openEnvironments } from './policy.ts'
import { sync, report, sums } from '../operations/feed.ts'
import { readSkillFeed } from '../store/skill-feed.ts'
import { storeOf } from '../../../store/store.ts'
import { skillsBeyond, storeTelemetry, sumTelemetry } from '../store/telemetry.ts'
import { listed } from '../../../http/describe/paging.ts'
import type { Context } from 'hono'
import { withIso } from '../../../base/time.ts'
import type { NewPromotion, StoredPromotion } from '../contract/promotion.ts'
import { approve, find, list, reject, request } from '../operations/promotions.ts'
import type { CiReport } from '../../../contract/reports/skill-test.ts'
import type { SkillVersion } from '../../../contract/skill.ts'
import { testSkill } from '../../../skills/ci/ci.ts'
import { manifestSchema, type Manifest } from '../../../skills/manifest/manifest.ts'
import { decidePromotion, findPromotion, insertPromotion, listPromotions, promotedTo } from '../store/promotions.ts'
import { demandReach } from '../../../http/artifacts/owner-access.ts'
import { skillAt } from '../../../http/artifacts/path.ts'
import { storedSuite } from '../../../http/artifacts/skill-tests.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { conflict, forbidden, invalid, notFound } from '../../../http/problems/refusals.ts'

/** The time for which a promotion can be approved: its tests are as old. */
const WITHIN_MS = 7 * 86_400_000
const SEED = '1'

type Called = Pick<Context<AuthEnv>, 'env' | 'var'>
type PromotionRequest = { params: { id: string }; body: { reason?: string | undefined } }
const deciding =
  (status: 'approved' | 'rejected') =>
  async (c: Called, { params: { id }, body }: PromotionRequest) =>
    present(await decided(c, await seen(c, id), { status, reason: body.reason ?? null }))

const promotionRoutes = resource().openapiRoutes([
  serve(request, async (c, { body }) => present(await requested(c, body))),
  serve(list, async (c, { query: { cursor: before, ...query } }) => {
    const found = await listPromotions(storeOf(c.env), { ...query, before, key_scopes: c.var.principal.scopes, now: Date.now() })
    return listed(found, { present, cursor: ({ created_at, id }) => ({ at: created_at, id }) })
  }),
  serve(find, async (c, { params: { id } }) => present(await seen(c, id))),
  serve(approve, deciding('approved')),
  serve(reject, deciding('rejected')),
])

const present = ({ requested_key: _requested_key, decided_key: _decided_key, ...shown }: StoredPromotion) =>
  withIso(shown, ['created_at', 'expires_at', 'decided_at'])

async function requested(c: Called, { skill_id, version, from_env, to_env: wanted, reason }: NewPromotion): Promise<StoredPromotion> {
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

/** The cases of the skill, which run as if in the environment. */
function testIn(manifest: Manifest, env: string, suite: Awaited<ReturnType<typeof storedSuite>>): Promise<CiReport> {
  const cases = suite.cases.map((one) => ({ ...one, place: { ...one.place, env: [env] } }))
  return testSkill(manifest, { ...suite, cases, seed: SEED })
}

/** Promotions outside the key's scopes read as not found. */
async function seen({ env, var: { principal } }: Called, id: string): Promise<StoredPromotion> {
  const found = await findPromotion(storeOf(env), id, { key_scopes: principal.scopes, now: Date.now() })
  if (!found) throw notFound(`There is no promotion ${id} in the scopes of this key.`)
  return found
}

type PromotionOutcome = { status: 'approved' | 'rejected'; reason: string | null }

async function decided(
  { env, var: { principal } }: Called,
  found: StoredPromotion,
  { status, reason }: PromotionOutcome,
): Promise<StoredPromotion> {
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

const telemetryRoutes = resource().openapiRoutes([
  serve(report, async (c, { body }) => {
    const { key_id, scopes } = c.var.principal
    const named = body.skills.map(({ skill_id }) => skill_id)
    const refused = await skillsBeyond(storeOf(c.env), scopes, named)
    const skills = body.skills.filter(({ skill_id }) => !refused.includes(skill_id))
    const is_new = skills.length === 0 || (await storeTelemetry(storeOf(c.env), key_id, { ...body, skills }))
    return { accepted: is_new ? skills.length : 0, duplicate: !is_new, ...(refused.length > 0 && { refused }) }
  }),
  serve(sums, async (c, { query: { since, ...query } }) => {
    const asked = { ...query, since: since === undefined ? 0 : Date.parse(since), key_scopes: c.var.principal.scopes }
    const found = await sumTelemetry(storeOf(c.env), asked)
    const present = (sum: (typeof found.items)[number]) => ({ ...sum, success_rate: sum.calls === 0 ? null : sum.success / sum.calls })
    return listed(found, { present, cursor: ({ skill_id }) => skill_id })
  }),
])

const syncRoutes = resource().openapiRoutes([
  serve(sync, (c, { query: { project, since } }) => {
    const { key_id, scopes: key_scopes } = c.var.principal
    return readSkillFeed(storeOf(c.env), { since, project: project || undefined, key_id, key_scopes })
  }),
])

/** The routes that other deployments call. */
export const controlPlaneRoutes = resource()
  .route('/', policyRoutes)
  .route('/', syncRoutes)
  .route('/', promotionRoutes)
  .route('/', telemetryRoutes)
