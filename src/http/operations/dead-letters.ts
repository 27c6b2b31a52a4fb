import type { Context } from 'hono'
import { jsonValue } from '../../base/json.ts'
import { withIso } from '../../base/time.ts'
import { discard, find, list, retry, retryMany } from '../../contract/operations/dead-letters.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Requested } from '../../contract/log-entry.ts'
import type { Event } from '../../core/event.ts'
import type { Env } from '../../env.ts'
import { deleteDeadLetters, findDeadLetter, listDeadLetters, type DeadLetterRow } from '../../store/dead-letters.ts'
import { validTraceparent } from '../../events/traceparent.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { resource } from '../describe/describe.ts'
import { serve } from '../describe/operation.ts'
import { listed } from '../describe/paging.ts'
import { conflict, notFound } from '../problems/refusals.ts'
import { retryDeadLetters, retryNewest } from './retry-dead-letters.ts'
import { storeOf } from '../../store/store.ts'
import { withoutSecretFields } from '../../traces/keyed-hash.ts'

export const deadLetterRoutes = resource().openapiRoutes([
  serve(list, async ({ env, var: { principal } }, { query: { cursor: before, ...query } }) => {
    const found = await listDeadLetters(storeOf(env), { ...query, patterns: principal.scopes, before })
    return listed(found, {
      present: (letter) => present(env, letter),
      cursor: ({ dead_lettered_at, id }) => ({ at: dead_lettered_at, id }),
    })
  }),
  serve(find, async ({ env, var: { principal } }, { params: { id } }) => present(env, await covered(env, principal, id))),
  serve(retryMany, (c, { body }) => retryNewest({ ...c.var, env: c.env }, { ...body, patterns: c.var.principal.scopes }, requestOf(c))),
  serve(retry, async (c, { params }) => {
    const found = await covered(c.env, c.var.principal, params.id)
    const { failed } = await retryDeadLetters({ ...c.var, env: c.env }, [found], requestOf(c))
    const { id, scope, event_id } = found
    if (failed[0]) throw conflict('not-retried', failed[0].reason)
    return { id, scope: scope ?? '', event_id: event_id ?? '', status: 'retried' as const }
  }),
  serve(discard, async (c, { params: { id } }) => {
    const { principal } = c.var
    const found = await covered(c.env, principal, id)
    if (found.origin === 'scope' && found.scope !== null && found.event_id !== null) {
      await c.env.SCOPE.getByName(found.scope).discard([found.event_id], principal.name, requestOf(c).traceparent)
    }
    await deleteDeadLetters(storeOf(c.env), [found])
    return null
  }),
])

const requestOf = ({ req, var: { principal } }: Pick<Context<AuthEnv>, 'req' | 'var'>): Requested => ({
  by: principal.name,
  traceparent: validTraceparent(req.header('traceparent')) ?? undefined,
})

async function covered(env: Env, principal: Principal, id: string): Promise<DeadLetterRow> {
  const found = await findDeadLetter(storeOf(env), id)
  if (!found || !coversScope(principal, found.scope ?? '*')) throw notFound(`There is no dead letter ${id} in the scopes of this key.`)
  return found
}

function present(env: Env, { payload, event_id, ...letter }: DeadLetterRow) {
  const parsed = jsonValue(payload)
  const shown = withoutSecretFields(env, parsed)
  const text = shown === parsed ? payload : JSON.stringify(shown)
  const content: { payload: string } | { event: Event } = event_id === null ? { payload: text } : { event: shown as Event }
  return { ...withIso(letter, ['dead_lettered_at']), event_id, ...content }
}
