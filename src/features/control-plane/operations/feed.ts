import { z } from 'zod'
import { skillName } from '../../../contract/policy.ts'
import { skillFeed } from '../contract/skill-feed.ts'
import { skillTelemetry, telemetry, telemetryReceipt } from '../contract/telemetry.ts'
import { operations } from '../../../contract/operation.ts'
import { paged, pageLimit } from '../../../contract/paging.ts'
import { instant } from '../../../contract/operations/shared.ts'

const operation = operations({ tag: 'Control plane', roles: ['viewer'] })

export const sync = operation('get /v1/skills/sync', 'syncSkills', 'Follow the active skills of a project', {
  description:
    'The versions that became active or ceased to be since a revision, oldest change first; all since 0. Includes the skills whose owners may act in a scope of the key, and those whose manifest says `"scope": "org"`.',
  query: z.object({
    project: z.string().max(256).optional().describe('Leaves out the skills of other projects (`compat.project`). Empty: leaves out none.'),
    since: z.coerce.number<string>().int().min(0).default(0).describe('The `revision` of the previous page.'),
  }),
  answers: { 200: [skillFeed, 'A page.'] },
})

export const report = operation('post /v1/telemetry', 'reportTelemetry', 'Report the numbers of skills', {
  description:
    'Sums of a window of at most a day. Unknown fields are refused, so that nothing but these numbers arrives. Skills that the scopes of the key do not cover are refused by name (`refused`). The first report of a window counts; a repetition changes nothing. ' +
    'They are kept for `REFLEX_RETENTION_DAYS`.',
  roles: ['publisher'],
  body: telemetry,
  example: {
    client: 'shop-eu',
    window: { since: '2026-11-21T05:00:00Z', until: '2026-11-21T06:00:00Z' },
    skills: [{ skill_id: 'network.block', calls: 12, success: 11, delta_cost: -0.42, delta_p95: -0.3 }],
  },
  answers: { 200: [telemetryReceipt, 'The receipt.'] },
})

export const sums = operation('get /v1/telemetry', 'getTelemetry', 'Sum the reported numbers by skill', {
  description: 'Over all clients, by the id of the skill.',
  query: z.object({
    skill_id: skillName.optional().describe('Only this skill.'),
    since: instant.optional().describe('Only windows that started at this time or later.'),
    limit: pageLimit(1000),
    cursor: skillName.optional(),
  }),
  answers: { 200: [paged(skillTelemetry), 'A page.'] },
})
