import { createRoute, z } from '@hono/zod-openapi'
import type { Bulletin } from '../../skills/bulletin/bulletin.ts'
import { guard, json, jsonText, problems, resource, scopePath } from '../describe/describe.ts'

const bulletin = z
  .object({
    text: z.string().meta({ description: 'For the system prompt; empty where no skill fits.' }),
    tokens: z.int().meta({ description: 'An estimate.' }),
    cards: z.array(
      z.object({
        skill_id: z.string(),
        version: z.string(),
        text: z.string(),
        tokens: z.int(),
        shortened: z.boolean().meta({ description: 'Not all that there is to say fitted.' }),
        score: z.number(),
      }),
    ),
  })
  .openapi('Bulletin')

const show = createRoute({
  method: 'get',
  path: '/v1/scopes/{scope}/bulletin',
  operationId: 'getBulletin',
  tags: ['Skills'],
  summary: 'Show what a model would be told of skills',
  description:
    "The active skills that fit where the scope's agent works and what is being said, at most five, best first: by its settings `project`, `env`, `toolset`, `repo` and `goal_labels`, and what went well lately.",
  ...guard({ roles: ['viewer'], scoped: true }),
  request: {
    params: scopePath,
    query: z.object({
      text: z.string().max(10_000).default('').meta({ description: 'What is being said.', example: 'deploy the latest to staging' }),
    }),
  },
  responses: { 200: json(bulletin, 'The bulletin.'), ...problems(400) },
})

export const bulletinRoutes = resource().openapi(show, async (c) => {
  return jsonText<Bulletin>(await c.env.SCOPE.getByName(c.var.scope).bulletin(c.req.valid('query').text))
})
