import { z } from '@hono/zod-openapi'
import { skillFeed } from '../contract/skill-feed.ts'
import { readSkillFeed } from '../store/skill-feed.ts'
import { storeOf } from '../../../store/store.ts'
import { guard, json, problems, resource, routes } from '../../../http/describe/describe.ts'

const route = routes('Control plane')

const sync = route('get /v1/skills/sync', 'syncSkills', 'Follow the active skills of a project', {
  description:
    'The versions that became active or ceased to be since a revision, oldest change first; all since 0. Includes the skills whose owners may act in a scope of the key, and those whose manifest says `"scope": "org"`.',
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({
      project: z.string().min(1).max(256).optional().describe('Leaves out the skills of other projects (`compat.project`).'),
      since: z.coerce.number<string>().int().min(0).default(0).describe('The `revision` of the previous page.'),
    }),
  },
  responses: { 200: json(skillFeed, 'A page.'), ...problems(400) },
})

export const syncRoutes = resource().openapi(sync, async (c) =>
  c.json(
    await readSkillFeed(storeOf(c.env), {
      ...c.req.valid('query'),
      project: c.req.valid('query').project,
      key_id: c.var.principal.key_id,
      key_scopes: c.var.principal.scopes,
    }),
    200,
  ),
)
