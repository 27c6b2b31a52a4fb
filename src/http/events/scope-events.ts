import { z } from '@hono/zod-openapi'
import { limits } from '../../base/limits.ts'
import { hasRole, type Principal } from '../../contract/principal.ts'
import { feedback, judged } from '../../features/proof/contract/audit.ts'
import { type EventReceipt, eventRecord, eventStatuses, outcomes, receipts } from '../../contract/event-record.ts'
import type { Page, Waited } from '../../contract/scope-api.ts'
import { guard, json, jsonRequest, jsonText, problems, resource, routes, scopePath } from '../describe/describe.ts'
import { paged, pageLimit } from '../../contract/paging.ts'
import { partialQuery } from '../describe/paging.ts'
import { eventBody } from '../body/event-body.ts'
import { eventRules, readEvents } from '../body/parse-events.ts'
import { onlyOwn } from '../auth/middleware.ts'
import { conflict, inboxFull, notFound } from '../problems/refusals.ts'

const route = routes('Scopes')

const WAIT_MS = 10_000

const publish = route('post /v1/scopes/{scope}/events', 'publishScopeEvents', 'Send events directly to one scope', {
  description:
    'Responds once the inbox has stored the events. With `wait=outcome`, responds once each event has its outcome, or with receipts when the time is up; `waiting` then tells why an event has no outcome yet. ' +
    'The outcome of an event is for the key that sent it and for the role viewer: another key that sends its id again gets the receipt, with 202. ' +
    'Outcomes beyond 4 MB in total are shortened (`shortened`): `GET /v1/scopes/{scope}/events/{id}` returns the full one.',
  ...guard({ roles: ['publisher'], scoped: true }),
  request: {
    params: scopePath,
    query: z.object({
      wait: z.literal('outcome').optional().describe('Respond once each event has its outcome. `timeout_ms` limits the wait.'),
      timeout_ms: z.coerce
        .number<string>()
        .int()
        .min(1)
        .max(limits.wait_ms)
        .default(WAIT_MS)
        .meta({
          description:
            `With \`wait=outcome\`: maximum wait in ms, ${WAIT_MS} by default and ${limits.wait_ms} at most. ` +
            'When the time is up, the response is 202 with the receipts, and processing continues.',
        }),
    }),
    body: eventBody(),
  },
  responses: {
    200: json(outcomes, 'The events with their outcomes.'),
    202: json(receipts, 'Accepted.'),
    ...problems(400, 413, 415),
  },
})

const list = route('get /v1/scopes/{scope}/events', 'listScopeEvents', "List a scope's events with their outcomes, newest first", {
  description:
    'Read from the scope, so that it is current. An event without an outcome says why it waits. A page holds at most 4 MB and looks at most at 20,000 events: ' +
    'with `status` or `type` it may be shorter than `limit`. Events that retention has deleted are in `GET /v1/events`, or in the archive.',
  ...guard({ roles: ['viewer'], scoped: true }),
  request: {
    params: scopePath,
    query: z.object({
      status: z.enum(eventStatuses).optional(),
      partial: partialQuery,
      type: z.string().min(1).max(128).optional(),
      limit: pageLimit(1000),
      cursor: z.coerce.number<string>().int().min(1).optional(),
    }),
  },
  responses: { 200: json(paged(eventRecord), 'A page.'), ...problems(400) },
})

const judge = route('post /v1/scopes/{scope}/events/{id}/feedback', 'judgeDecision', 'Judge the decision about an event', {
  description:
    'For people who see that a reflex or a turn decided well or badly. It changes nothing that was done. It counts in the metrics and the certificate of the reflex that decided, ' +
    'once for each event, and what is learned takes the reply as the right one. See docs/reflexes.md.',
  ...guard({ roles: ['operator'], scoped: true, body: 'json' }),
  request: {
    params: scopePath.extend({ id: z.string().min(1).max(128) }),
    body: jsonRequest(feedback, { right: false, reply: 'We open at nine.' }),
  },
  responses: { 200: json(judged, 'The decision that was judged.'), ...problems(400, 404, 409, 413, 415) },
})

type EventPage = Page<z.infer<typeof eventRecord>>

export const scopeEventRoutes = resource()
  .openapi(list, async (c) => {
    const { cursor: before, ...query } = c.req.valid('query')
    return jsonText<EventPage>(await c.env.SCOPE.getByName(c.var.scope).events({ ...query, before }))
  })
  .openapi(judge, async (c) => {
    const { scope, principal } = c.var
    const answer = await c.env.SCOPE.getByName(scope).judge(c.req.valid('param').id, c.req.valid('json'), principal.name)
    if (answer.ok) return c.json(answer.judged, 200)
    throw answer.reason === 'unknown' ? notFound(`${answer.detail}.`) : conflict('undecided', `${answer.detail}.`)
  })
  .openapi(publish, async (c) => {
    const { scope } = c.var
    const { wait, timeout_ms } = c.req.valid('query')
    const events = await readEvents(c.req.raw, eventRules(c, scope), c)
    const stub = c.env.SCOPE.getByName(scope)
    const answer = await stub.accept(events, 'http')
    if (!answer.ok) throw inboxFull(scope, answer)
    const accepted = answer.receipts.filter(({ status }) => status === 'accepted').length
    if (wait === 'outcome') {
      const ids = answer.receipts.map(({ id }) => id)
      const waited = await stub.outcomes(ids, timeout_ms, onlyOwn(c.var.principal))
      const shown = new Set(waited.records.map(({ id }) => id))
      if (waited.settled && ids.every((id) => shown.has(id)))
        return c.json({ accepted, events: withOutcomes(answer.receipts, waited, c.var.principal) }, 200)
      return c.json({ accepted, events: withReasons(answer.receipts, waited) }, 202)
    }
    return c.json({ accepted, events: answer.receipts }, 202)
  })

/** Adds the reason why an event has no outcome yet. */
function withReasons(receipts: readonly EventReceipt[], { records }: Waited) {
  const reasons = new Map(records.map(({ id, waiting }) => [id, waiting]))
  return receipts.map((receipt) => ({ ...receipt, waiting: reasons.get(receipt.id) ?? null }))
}

/** The place of an error in the code is for keys that may read the scope's log. */
function withOutcomes(receipts: readonly EventReceipt[], { records }: Waited, principal: Principal) {
  const mayRead = hasRole(principal, 'viewer')
  const byId = new Map(records.map((record) => [record.id, record]))
  return receipts.flatMap(({ id, scope }) => {
    const record = byId.get(id)
    if (!record) return []
    const { waiting: _none, outcome, ...rest } = record
    if (mayRead || outcome?.by !== 'failure') return [{ scope, ...rest, outcome }]
    const { stack: _stack, ...failure } = outcome
    return [{ scope, ...rest, outcome: failure }]
  })
}
