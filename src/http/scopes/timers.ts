import { z } from '@hono/zod-openapi'
import type { Problem } from '../../contract/problem.ts'
import { schedule, timer } from '../../contract/settings/schedule.ts'
import { traceContextOf } from '../../events/traceparent.ts'
import { guard, json, jsonRequest, problems, resource, routes, scopePath } from '../describe/describe.ts'
import { whole } from '../describe/paging.ts'
import { conflict, invalid, notFound } from '../problems/refusals.ts'

const route = routes('Timers')
const name = z.string().regex(/^[A-Za-z0-9._:-]{1,64}$/, 'a timer is named by 1 to 64 characters of A-Z a-z 0-9 . _ : and -')
const timerPath = scopePath.extend({ name })

const set = route('put /v1/scopes/{scope}/timers/{name}', 'putTimer', 'Set a timer', {
  description:
    'Each tick is a `timer.tick` event. A timer ticks at an interval, by a cron expression in UTC, or once. Idempotent: setting the same schedule again changes nothing. ' +
    'Missed ticks are merged into one. While the inbox is full, ticks of a repeating timer are skipped and logged (`timer-skipped`).',
  ...guard({ roles: ['operator'], scoped: true, body: 'json' }),
  request: { params: timerPath, body: jsonRequest(schedule, { every_s: 60 }) },
  responses: { 200: json(timer, 'Updated, or unchanged.'), 201: json(timer, 'Created.'), ...problems(400, 409, 413, 415) },
})

const list = route('get /v1/scopes/{scope}/timers', 'listTimers', 'List timers, by name', {
  ...guard({ roles: ['operator'], scoped: true }),
  request: { params: scopePath },
  responses: { 200: json(whole(timer), 'All timers.'), ...problems(400) },
})

const get = route('get /v1/scopes/{scope}/timers/{name}', 'getTimer', 'Get a timer', {
  ...guard({ roles: ['operator'], scoped: true }),
  request: { params: timerPath },
  responses: { 200: json(timer, 'The timer.'), ...problems(400, 404) },
})

const remove = route('delete /v1/scopes/{scope}/timers/{name}', 'deleteTimer', 'Remove a timer', {
  ...guard({ roles: ['operator'], scoped: true }),
  request: { params: timerPath },
  responses: { 204: { description: 'Removed.' }, ...problems(400, 404) },
})

export const timerRoutes = resource()
  .openapi(set, async (c) => {
    const { scope, principal } = c.var
    const trace = traceContextOf(c.req.header('traceparent'))
    const outcome = await c.env.SCOPE.getByName(scope).setTimer(c.req.valid('param').name, c.req.valid('json'), principal.name, trace)
    if (!outcome.ok) throw refusals[outcome.reason](outcome.detail)
    return outcome.created ? c.json(outcome.timer, 201) : c.json(outcome.timer, 200)
  })
  .openapi(list, async (c) => c.json({ items: await c.env.SCOPE.getByName(c.var.scope).timers(), next_cursor: null }, 200))
  .openapi(get, async (c) => {
    const { scope, name } = c.req.valid('param')
    const found = await c.env.SCOPE.getByName(scope).timer(name)
    if (!found) throw noTimer(scope, name)
    return c.json(found, 200)
  })
  .openapi(remove, async (c) => {
    const { scope, name } = c.req.valid('param')
    const trace = traceContextOf(c.req.header('traceparent'))
    if (!(await c.env.SCOPE.getByName(scope).removeTimer(name, c.var.principal.name, trace))) throw noTimer(scope, name)
    return c.body(null, 204)
  })

const refusals: Record<'never_due' | 'too_many', (detail: string) => Problem> = {
  never_due: (detail) => invalid(detail),
  too_many: (detail) => conflict('too-many-timers', detail),
}

const noTimer = (scope: string, name: string) => notFound(`The scope ${scope} has no timer ${name}.`)
