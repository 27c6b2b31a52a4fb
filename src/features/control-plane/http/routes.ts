import { resource, serve } from '../../../http/describe/operation.ts'
import { policyRoutes } from './policy.ts'
import { promotionRoutes } from './promotions.ts'
import { sync, report, sums } from '../operations/feed.ts'
import { readSkillFeed } from '../store/skill-feed.ts'
import { storeOf } from '../../../store/store.ts'
import { skillsBeyond, storeTelemetry, sumTelemetry } from '../store/telemetry.ts'
import { listed } from '../../../http/describe/paging.ts'

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
    return readSkillFeed(storeOf(c.env), { since, project, key_id, key_scopes })
  }),
])

/** The routes that other deployments call. */
export const controlPlaneRoutes = resource()
  .route('/', policyRoutes)
  .route('/', syncRoutes)
  .route('/', promotionRoutes)
  .route('/', telemetryRoutes)
