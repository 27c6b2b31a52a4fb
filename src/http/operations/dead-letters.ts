import { createRoute, z } from '@hono/zod-openapi'
import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { scopeName, type Event } from '../../core/event.ts'
import { deleteDeadLetters, findDeadLetter, listDeadLetters, type DeadLetter } from '../../store/dead-letters.ts'
import { ageCursor, beforeOf, nextByAge } from '../describe/age-cursor.ts'
import { guard, json, jsonRequest, paged, pageLimit, problems, resource } from '../describe/describe.ts'
import { conflict, notFound } from '../problems/refusals.ts'
import { retryDeadLetters, retryNewest } from './retry-dead-letters.ts'
import { event } from '../describe/schemas.ts'

const tags = ['Dead letters']
const letter = z
  .object({
    id: z.string(),
    origin: z
      .enum(['scope', 'queue'])
      .meta({ description: '`scope`: it gave the event up. `queue`: it could not be delivered to its scope.' }),
    scope: z.string().nullable(),
    event_id: z.string().nullable(),
    type: z.string().nullable(),
    error: z.string(),
    stack: z.string().nullable().meta({ description: 'Where the error was thrown, where it has a stack.' }),
    attempts: z.int(),
    event: event.optional(),
    payload: z.string().optional().meta({ description: 'Instead of an event: a message that could not be read.' }),
    dead_lettered_at: z.iso.datetime(),
  })
  .openapi('DeadLetter')
const letterPath = z.object({ id: z.string().min(1).max(128) })
const type = z.string().min(1).max(128).optional()

const list = createRoute({
  method: 'get',
  path: '/v1/dlq',
  operationId: 'listDeadLetters',
  tags,
  summary: 'List dead letters, newest first',
  description: 'Messages that name no scope are shown to keys that cover every scope.',
  ...guard({ roles: ['operator'] }),
  request: {
    query: z.object({
      scope: scopeName.optional(),
      type,
      limit: pageLimit(1000),
      cursor: ageCursor,
    }),
  },
  responses: { 200: json(paged(letter), 'A page.'), ...problems(400) },
})

const find = createRoute({
  method: 'get',
  path: '/v1/dlq/{id}',
  operationId: 'getDeadLetter',
  tags,
  summary: 'Get a dead letter',
  ...guard({ roles: ['operator'] }),
  request: { params: letterPath },
  responses: { 200: json(letter, 'The dead letter.'), ...problems(400, 404) },
})

const failure = z.object({ id: z.string(), reason: z.string() })
const retryMany = createRoute({
  method: 'post',
  path: '/v1/dlq/retry',
  operationId: 'retryDeadLetters',
  tags,
  summary: 'Retry dead letters',
  description: 'The newest ones that match, `limit` at most. Their events go back to their scopes with their attempts at zero.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: {
    body: jsonRequest(z.strictObject({ scope: scopeName.optional(), type, limit: z.int().min(1).max(1000).default(100) }), {
      scope: 'default',
    }),
  },
  responses: {
    200: json(z.object({ retried: z.int(), failed: z.array(failure) }), 'How many go again, and which cannot.'),
    ...problems(400, 413, 415),
  },
})

const retry = createRoute({
  method: 'post',
  path: '/v1/dlq/{id}/retry',
  operationId: 'retryDeadLetter',
  tags,
  summary: 'Retry a dead letter',
  ...guard({ roles: ['operator'] }),
  request: { params: letterPath },
  responses: {
    200: json(z.object({ id: z.string(), scope: z.string(), event_id: z.string(), status: z.literal('retried') }), 'It goes again.'),
    ...problems(400, 404, 409),
  },
})

const discard = createRoute({
  method: 'delete',
  path: '/v1/dlq/{id}',
  operationId: 'discardDeadLetter',
  tags,
  summary: 'Discard a dead letter',
  description: 'The event stays in its scope as `dead_lettered`; it is only no longer listed here.',
  ...guard({ roles: ['operator'] }),
  request: { params: letterPath },
  responses: { 204: { description: 'Discarded.' }, ...problems(400, 404) },
})

export const deadLetterRoutes = resource()
  .openapi(list, async (c) => {
    const { limit, cursor, ...query } = c.req.valid('query')
    const letters = await listDeadLetters(c.env.DB, {
      ...query,
      patterns: c.var.principal.scopes,
      before: beforeOf(cursor),
      limit,
    })
    const next_cursor = nextByAge(letters, placeOf)
    return c.json({ items: letters.items.map(present), next_cursor }, 200)
  })
  .openapi(find, async (c) => c.json(present(await mine(c.env, c.var.principal, c.req.valid('param').id)), 200))
  .openapi(retryMany, async (c) => {
    const { principal } = c.var
    const query = { ...c.req.valid('json'), patterns: principal.scopes }
    return c.json(await retryNewest(c.env, query, principal.name), 200)
  })
  .openapi(retry, async (c) => {
    const { principal } = c.var
    const found = await mine(c.env, principal, c.req.valid('param').id)
    const { failed } = await retryDeadLetters(c.env, [found], principal.name)
    const { id, scope, event_id } = found
    if (failed[0]) throw conflict('not-retried', failed[0].reason)
    return c.json({ id, scope: scope ?? '', event_id: event_id ?? '', status: 'retried' as const }, 200)
  })
  .openapi(discard, async (c) => {
    const { principal } = c.var
    const found = await mine(c.env, principal, c.req.valid('param').id)
    if (found.origin === 'scope' && found.scope !== null && found.event_id !== null) {
      await c.env.SCOPE.getByName(found.scope).discard([found.event_id], principal.name)
    }
    await deleteDeadLetters(c.env.DB, [found])
    return c.body(null, 204)
  })

const placeOf = ({ dead_lettered_at, id }: DeadLetter) => ({ at: dead_lettered_at, id })

async function mine({ DB }: Env, principal: Principal, id: string): Promise<DeadLetter> {
  const found = await findDeadLetter(DB, id)
  if (!found || !coversScope(principal, found.scope ?? '*')) throw notFound(`There is no dead letter ${id} in the scopes of this key.`)
  return found
}

function present({ payload, event_id, dead_lettered_at, ...letter }: DeadLetter) {
  const content: { payload: string } | { event: Event } = event_id === null ? { payload } : { event: JSON.parse(payload) }
  return { ...letter, event_id, ...content, dead_lettered_at: new Date(dead_lettered_at).toISOString() }
}
