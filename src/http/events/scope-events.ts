import { hasRole, type Principal } from '../../contract/principal.ts'
import { judge, listInScope, publishInScope } from '../../contract/operations/events.ts'
import type { EventReceipt } from '../../contract/event-record.ts'
import type { Waited } from '../../contract/scope-api.ts'
import { jsonText, resource, serve } from '../describe/operation.ts'
import { eventRules, readEvents } from '../body/body.ts'
import { onlyOwn } from '../auth/middleware.ts'
import { conflict, inboxFull, notFound } from '../problems/refusals.ts'

export const scopeEventRoutes = resource().openapiRoutes([
  serve(listInScope, async (c, { query: { cursor: before, ...query } }) =>
    jsonText(await c.env.SCOPE.getByName(c.var.scope).events({ ...query, before })),
  ),
  serve(judge, async (c, { params: { id }, body }) => {
    const { scope, principal } = c.var
    const answer = await c.env.SCOPE.getByName(scope).judge(id, body, principal.name)
    if (answer.ok) return answer.judged
    throw answer.reason === 'unknown' ? notFound(`${answer.detail}.`) : conflict('undecided', `${answer.detail}.`)
  }),
  serve(publishInScope, async (c, { query: { wait, timeout_ms } }) => {
    const { scope } = c.var
    const events = await readEvents(c.req.raw, { ...eventRules(c, scope), heard: wait === 'outcome' }, c)
    const stub = c.env.SCOPE.getByName(scope)
    const answer = await stub.accept(events, 'http')
    if (!answer.ok) throw inboxFull(scope, answer)
    const accepted = answer.receipts.filter(({ status }) => status === 'accepted').length
    if (wait === 'outcome') {
      const ids = answer.receipts.map(({ id }) => id)
      const waited = await stub.outcomes(ids, timeout_ms, onlyOwn(c.var.principal))
      const shown = new Set(waited.records.map(({ id }) => id))
      if (waited.settled && ids.every((id) => shown.has(id)))
        return [200, { accepted, events: withOutcomes(answer.receipts, waited, c.var.principal) }] as const
      return [202, { accepted, events: withReasons(answer.receipts, waited) }] as const
    }
    return [202, { accepted, events: answer.receipts }] as const
  }),
])

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
