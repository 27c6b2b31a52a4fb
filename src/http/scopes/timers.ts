import type { Context } from 'hono'
import { get, list, remove, set } from '../../contract/operations/timers.ts'
import type { Problem } from '../../contract/problem.ts'
import { traceContextOf } from '../../events/traceparent.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { resource, created, serve } from '../describe/operation.ts'
import { conflict, invalid, notFound } from '../problems/refusals.ts'

const scopeOf = (c: Context<AuthEnv>) => c.env.SCOPE.getByName(c.var.scope)

export const timerRoutes = resource().openapiRoutes([
  serve(set, async (c, { params: { name }, body }) => {
    const outcome = await scopeOf(c).setTimer(name, body, c.var.principal.name, traceContextOf(c.req.header('traceparent')))
    if (!outcome.ok) throw refusals[outcome.reason](outcome.detail)
    return created(outcome.created, outcome.timer)
  }),
  serve(list, async (c) => ({ items: await scopeOf(c).timers(), next_cursor: null })),
  serve(get, async (c, { params: { scope, name } }) => {
    const found = await scopeOf(c).timer(name)
    if (!found) throw noTimer(scope, name)
    return found
  }),
  serve(remove, async (c, { params: { scope, name } }) => {
    const trace = traceContextOf(c.req.header('traceparent'))
    if (!(await scopeOf(c).removeTimer(name, c.var.principal.name, trace))) throw noTimer(scope, name)
    return null
  }),
])

const refusals: Record<'never_due' | 'too_many', (detail: string) => Problem> = {
  never_due: (detail) => invalid(detail),
  too_many: (detail) => conflict('too-many-timers', detail),
}

const noTimer = (scope: string, name: string) => notFound(`The scope ${scope} has no timer ${name}.`)
