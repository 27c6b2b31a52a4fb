import { createRoute, z } from '@hono/zod-openapi'
import type { Bulletin } from '../../skills/bulletin/bulletin.ts'
import { guard, json, jsonText, problems, resource, scopePath } from '../describe/describe.ts'

const bulletin = z
  .object({
    text: z.string().meta({ description: 'For the system prompt; empty if no skill matches.' }),
    tokens: z.int().meta({ description: 'An estimate.' }),
    cards: z.array(
      z.object({
        skill_id: z.string(),
        version: z.string(),
        text: z.string(),
        tokens: z.int(),
        shortened: z.boolean().meta({ description: 'The card was cut to fit.' }),
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
  summary: 'Show the skills that a model would see',
  description:
    "The active skills that match the text and are compatible with the scope's settings `project`, `env`, `toolset`, `repo` and `goal_labels`: at most five, best first. Recent successes rank higher.",
  ...guard({ roles: ['viewer'], scoped: true }),
  request: {
    params: scopePath,
    query: z.object({
      text: z.string().max(10_000).default('').meta({ description: 'The text to match.', example: 'deploy the latest to staging' }),
    }),
  },
  responses: { 200: json(bulletin, 'The bulletin.'), ...problems(400) },
})

export const bulletinRoutes = resource().openapi(show, async (c) => {
  return jsonText<Bulletin>(await c.env.SCOPE.getByName(c.var.scope).bulletin(c.req.valid('query').text))
})
