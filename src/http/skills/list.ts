import { createRoute, z } from '@hono/zod-openapi'
import { skillState } from '../../contract/skill.ts'
import { manifestJsonSchema } from '../../skills/manifest/manifest.ts'
import { skillId } from '../../skills/manifest/names.ts'
import { readableBy } from '../../store/skill-scopes.ts'
import { listSkills, listSkillVersions } from '../../store/skills.ts'
import { guard, json, paged, pageLimit, problems, resource } from '../describe/describe.ts'
import { skillAt, skillPath } from './path.ts'
import { listedSkill, presentListed, presentSkill, skill } from './schemas.ts'

const tags = ['Skills']

const WHOSE = 'A key reads the skills whose owners may touch a scope that it covers, too.'
const OTHERS = 'Of all others it reads only the versions whose manifest says `"scope": "org"`.'

const list = createRoute({
  method: 'get',
  path: '/v1/skills',
  operationId: 'listSkills',
  tags,
  summary: 'List skills, by id',
  description:
    'Of each the newest active version, or the newest where none is active, without its manifest; with `state`, the newest one in that state. ' +
    `${WHOSE} ${OTHERS}`,
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({
      q: z.string().min(1).max(200).optional().meta({ description: 'Is looked for in ids and descriptions, in capitals or not.' }),
      state: skillState.optional(),
      limit: pageLimit(1000),
      cursor: skillId.optional(),
    }),
  },
  responses: { 200: json(paged(listedSkill), 'A page.'), ...problems(400) },
})

const schema = createRoute({
  method: 'get',
  path: '/v1/skills/schema',
  operationId: 'getSkillSchema',
  tags,
  summary: "Get a manifest's JSON Schema",
  description:
    'What a manifest is made of, for editors and for whoever writes one. Whether its parts fit together is checked when it is registered.',
  ...guard({ roles: ['viewer'] }),
  responses: { 200: json(z.record(z.string(), z.unknown()), 'JSON Schema, draft 2020-12.'), ...problems() },
})

const find = createRoute({
  method: 'get',
  path: '/v1/skills/{ref}',
  operationId: 'getSkill',
  tags,
  summary: 'Get a skill',
  description: `${WHOSE} ${OTHERS}`,
  ...guard({ roles: ['viewer'] }),
  request: { params: skillPath },
  responses: { 200: json(skill, 'The version, with its manifest, and what versions there are.'), ...problems(400, 404) },
})

export const skillRoutes = resource()
  .openapi(list, async (c) => {
    const key_scopes = c.var.principal.scopes
    const { items, next_cursor } = await listSkills(c.env.DB, { ...c.req.valid('query'), key_scopes })
    return c.json({ items: items.map(presentListed), next_cursor }, 200)
  })
  .openapi(schema, (c) => c.json({ ...manifestJsonSchema() }, 200))
  .openapi(find, async (c) => {
    const visible = await readableBy(c.env.DB, c.var.principal.scopes)
    const found = await skillAt(c.env.DB, c.req.valid('param').ref, visible)
    return c.json(presentSkill(found, await listSkillVersions(c.env.DB, found.id, visible)), 200)
  })
