import { createRoute, z } from '@hono/zod-openapi'
import { keyName } from '../../contract/principal.ts'
import { reflexId, reflexState } from '../../contract/reflex.ts'
import { templates } from '../../reflexes/templates/index.ts'
import { listReflexes, listVersions } from '../../store/reflexes.ts'
import { guard, json, paged, pageLimit, problems, resource } from '../describe/describe.ts'
import { plainSchema } from '../describe/plain-schema.ts'
import { reflexAt, reflexPath } from './path.ts'
import { listedReflex, presentListed, presentReflex, reflex } from './schemas.ts'

const tags = ['Reflexes']

const list = createRoute({
  method: 'get',
  path: '/v1/reflexes',
  operationId: 'listReflexes',
  tags,
  summary: 'List reflexes, by id',
  description: 'The newest version of each, without its code; with `state`, the newest one in that state.',
  ...guard({ roles: ['viewer'] }),
  request: {
    query: z.object({
      owner: keyName.optional(),
      state: reflexState.optional(),
      q: z.string().min(1).max(200).optional().meta({ description: 'Is looked for in ids and descriptions, in capitals or not.' }),
      limit: pageLimit(1000),
      cursor: reflexId.optional(),
    }),
  },
  responses: { 200: json(paged(listedReflex), 'A page.'), ...problems(400) },
})

const listTemplates = createRoute({
  method: 'get',
  path: '/v1/reflexes/templates',
  operationId: 'listReflexTemplates',
  tags,
  summary: 'List templates',
  description: 'Reflexes for common needs: register one with its `template` and `params` in place of code.',
  ...guard({ roles: ['viewer'] }),
  responses: {
    200: json(
      z.object({
        items: z.array(
          z.object({
            name: z.string(),
            description: z.string(),
            params: z.record(z.string(), z.unknown()).meta({ description: 'The JSON Schema of its parameters.' }),
          }),
        ),
        next_cursor: z.null(),
      }),
      'All of them.',
    ),
    ...problems(),
  },
})

const find = createRoute({
  method: 'get',
  path: '/v1/reflexes/{ref}',
  operationId: 'getReflex',
  tags,
  summary: 'Get a reflex',
  ...guard({ roles: ['viewer'] }),
  request: { params: reflexPath },
  responses: { 200: json(reflex, 'The version, with its code, and what versions there are.'), ...problems(400, 404) },
})

const described = templates.map(({ name, description, params }) => {
  const schema: Record<string, unknown> = plainSchema(params)
  return { name, description, params: schema }
})

export const reflexRoutes = resource()
  .openapi(list, async (c) => {
    const { items, next_cursor } = await listReflexes(c.env.DB, c.req.valid('query'))
    return c.json({ items: items.map(presentListed), next_cursor }, 200)
  })
  .openapi(listTemplates, (c) => c.json({ items: described, next_cursor: null }, 200))
  .openapi(find, async (c) => {
    const found = await reflexAt(c.env.DB, c.req.valid('param').ref)
    return c.json(presentReflex(found, await listVersions(c.env.DB, found.id)), 200)
  })
