import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { jsonValue } from '../../base/json.ts'
import { withIso } from '../../base/time.ts'
import { deadLetter } from '../../contract/event-record.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Requested } from '../../contract/log-entry.ts'
import { scopeName, type Event } from '../../core/event.ts'
import type { Env } from '../../env.ts'
import { deleteDeadLetters, findDeadLetter, listDeadLetters, type DeadLetter } from '../../store/dead-letters.ts'
import { validTraceparent } from '../../events/traceparent.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { guard, idPath, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { byAge, paged } from '../../contract/paging.ts'
import { listed } from '../describe/paging.ts'
import { conflict, notFound } from '../problems/refusals.ts'
import { retryDeadLetters, retryNewest } from './retry-dead-letters.ts'
import { storeOf } from '../../store/store.ts'
import { withoutSecretFields } from '../../traces/keyed-hash.ts'

const route = routes('Dead letters')
const which = { scope: scopeName.optional(), type: z.string().min(1).max(128).optional() }

const list = route('get /v1/dlq', 'listDeadLetters', 'List dead letters, newest first', {
  description: 'Messages without a scope are listed only for keys that cover every scope.',
  ...guard({ roles: ['operator'] }),
  request: { query: byAge(which) },
  responses: { 200: json(paged(deadLetter), 'A page.'), ...problems(400) },
})

const find = route('get /v1/dlq/{id}', 'getDeadLetter', 'Get a dead letter', {
  ...guard({ roles: ['operator'] }),
  request: { params: idPath },
  responses: { 200: json(deadLetter, 'The dead letter.'), ...problems(400, 404) },
})

const failure = z.object({ id: z.string(), reason: z.string() })
const retryMany = route('post /v1/dlq/retry', 'retryDeadLetters', 'Retry dead letters', {
  description: 'Requeues the newest matches, at most `limit`. Their events return to their scopes with their attempts reset.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: { body: jsonRequest(z.strictObject({ ...which, limit: z.int().min(1).max(1000).default(100) }), { scope: 'default' }) },
  responses: {
    200: json(z.object({ retried: z.int(), failed: z.array(failure) }), 'The number requeued, and the ones that could not be.'),
    ...problems(400, 413, 415),
  },
})

const retry = route('post /v1/dlq/{id}/retry', 'retryDeadLetter', 'Retry a dead letter', {
  ...guard({ roles: ['operator'] }),
  request: { params: idPath },
  responses: {
    200: json(z.object({ id: z.string(), scope: z.string(), event_id: z.string(), status: z.literal('retried') }), 'Requeued.'),
    ...problems(400, 404, 409),
  },
})

const discard = route('delete /v1/dlq/{id}', 'discardDeadLetter', 'Discard a dead letter', {
  description: 'Removes it from this list. The event stays in its scope as `dead_lettered`.',
  ...guard({ roles: ['operator'] }),
  request: { params: idPath },
  responses: { 204: { description: 'Discarded.' }, ...problems(400, 404) },
})

export const deadLetterRoutes = resource()
  .openapi(list, async (c) => {
    const { cursor: before, ...query } = c.req.valid('query')
    const found = await listDeadLetters(storeOf(c.env), { ...query, patterns: c.var.principal.scopes, before })
    return c.json(
      listed(found, { present: (letter) => present(c.env, letter), cursor: ({ dead_lettered_at, id }) => ({ at: dead_lettered_at, id }) }),
      200,
    )
  })
  .openapi(find, async (c) => c.json(present(c.env, await covered(c.env, c.var.principal, c.req.valid('param').id)), 200))
  .openapi(retryMany, async (c) => {
    const { principal } = c.var
    return c.json(await retryNewest(c.env, { ...c.req.valid('json'), patterns: principal.scopes }, requestOf(c)), 200)
  })
  .openapi(retry, async (c) => {
    const { principal } = c.var
    const found = await covered(c.env, principal, c.req.valid('param').id)
    const { failed } = await retryDeadLetters(c.env, [found], requestOf(c))
    const { id, scope, event_id } = found
    if (failed[0]) throw conflict('not-retried', failed[0].reason)
    return c.json({ id, scope: scope ?? '', event_id: event_id ?? '', status: 'retried' as const }, 200)
  })
  .openapi(discard, async (c) => {
    const { principal } = c.var
    const found = await covered(c.env, principal, c.req.valid('param').id)
    if (found.origin === 'scope' && found.scope !== null && found.event_id !== null) {
      await c.env.SCOPE.getByName(found.scope).discard([found.event_id], principal.name, requestOf(c).traceparent)
    }
    await deleteDeadLetters(storeOf(c.env), [found])
    return c.body(null, 204)
  })

const requestOf = ({ req, var: { principal } }: Pick<Context<AuthEnv>, 'req' | 'var'>): Requested => ({
  by: principal.name,
  traceparent: validTraceparent(req.header('traceparent')) ?? undefined,
})

async function covered(env: Env, principal: Principal, id: string): Promise<DeadLetter> {
  const found = await findDeadLetter(storeOf(env), id)
  if (!found || !coversScope(principal, found.scope ?? '*')) throw notFound(`There is no dead letter ${id} in the scopes of this key.`)
  return found
}

function present(env: Env, { payload, event_id, ...letter }: DeadLetter) {
  const parsed = jsonValue(payload)
  const shown = withoutSecretFields(env, parsed)
  const text = shown === parsed ? payload : JSON.stringify(shown)
  const content: { payload: string } | { event: Event } = event_id === null ? { payload: text } : { event: shown as Event }
  return { ...withIso(letter, ['dead_lettered_at']), event_id, ...content }
}
