import { z } from '@hono/zod-openapi'
import { skillName } from '../../../contract/policy.ts'
import { skillTelemetry, telemetry, telemetryReceipt } from '../contract/telemetry.ts'
import { skillsBeyond, storeTelemetry, sumTelemetry } from '../store/telemetry.ts'
import { storeOf } from '../../../store/store.ts'
import { guard, instant, json, jsonRequest, problems, resource, routes } from '../../../http/describe/describe.ts'
import { paged, pageLimit } from '../../../contract/paging.ts'
import { listed } from '../../../http/describe/paging.ts'

const route = routes('Control plane')

const report = route('post /v1/telemetry', 'reportTelemetry', 'Report the numbers of skills', {
  description:
    'Sums of a window of at most a day. Unknown fields are refused, so that nothing but these numbers arrives. Skills that the scopes of the key do not cover are refused by name (`refused`). The first report of a window counts; a repetition changes nothing. ' +
    'They are kept for `REFLEX_RETENTION_DAYS`.',
  ...guard({ roles: ['publisher'], body: 'json' }),
  request: {
    body: jsonRequest(telemetry, {
      client: 'shop-eu',
      window: { since: '2026-11-21T05:00:00Z', until: '2026-11-21T06:00:00Z' },
      skills: [{ skill_id: 'network.block', calls: 12, success: 11, delta_cost: -0.42, delta_p95: -0.3 }],
    }),
  },
  responses: { 200: json(telemetryReceipt, 'The receipt.'), ...problems(400, 413, 415) },
})

const read = route('get /v1/telemetry', 'getTelemetry', 'Sum the reported numbers by skill', {
  description: 'Over all clients, by the id of the skill.',
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({
      skill_id: skillName.optional().describe('Only this skill.'),
      since: instant.optional().describe('Only windows that started at this time or later.'),
      limit: pageLimit(1000),
      cursor: skillName.optional(),
    }),
  },
  responses: { 200: json(paged(skillTelemetry), 'A page.'), ...problems(400) },
})

export const telemetryRoutes = resource()
  .openapi(report, async (c) => {
    const body = c.req.valid('json')
    const { key_id, scopes } = c.var.principal
    const named = body.skills.map(({ skill_id }) => skill_id)
    const refused = await skillsBeyond(storeOf(c.env), scopes, named)
    const skills = body.skills.filter(({ skill_id }) => !refused.includes(skill_id))
    const is_new = skills.length === 0 || (await storeTelemetry(storeOf(c.env), key_id, { ...body, skills }))
    return c.json({ accepted: is_new ? skills.length : 0, duplicate: !is_new, ...(refused.length > 0 && { refused }) }, 200)
  })
  .openapi(read, async (c) => {
    const { since, ...query } = c.req.valid('query')
    const asked = { ...query, since: since === undefined ? 0 : Date.parse(since), key_scopes: c.var.principal.scopes }
    const found = await sumTelemetry(storeOf(c.env), asked)
    const present = (sum: (typeof found.items)[number]) => ({ ...sum, success_rate: sum.calls === 0 ? null : sum.success / sum.calls })
    return c.json(listed(found, { present, cursor: ({ skill_id }) => skill_id }), 200)
  })
