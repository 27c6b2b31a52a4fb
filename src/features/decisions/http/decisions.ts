import type { Context } from 'hono'
import type { z } from '@hono/zod-openapi'
import type { Clean } from '../../../base/secrets.ts'
import { answersIn } from '../agent/answers.ts'
import { jsonHash } from '../../../base/hash.ts'
import { isAsked, type DecisionAsked } from '../../../contract/decision-asked.ts'
import type { decisionResponse } from '../../../contract/decision-answers.ts'
import type { EventOutcome } from '../../../contract/event-record.ts'
import { decide } from '../operations/decide.ts'
import type { ScopeApi } from '../../../contract/scope-api.ts'
import { traceContextOf } from '../../../events/traceparent.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { eventRules, readEvent } from '../../../http/body/body.ts'
import { resource, serve, type RequestOf } from '../../../http/describe/operation.ts'
import { conflict, inboxFull, refusal } from '../../../http/problems/refusals.ts'

export const decisionRoutes = resource().openapiRoutes([serve(decide, answer)])

async function answer(c: Context<AuthEnv>, { query: { timeout_ms }, headers: { 'idempotency-key': key }, body }: RequestOf<typeof decide>) {
  const { scope, principal } = c.var
  const named = key === undefined ? {} : { id: `decision-${hashOf([principal.key_id, key])}`, request_hash: hashOf(body) }
  const rules = eventRules(c, scope)
  const trace = traceContextOf(c.req.header('traceparent'), c.req.header('tracestate'))
  const asked = readEvent(
    { type: 'decision.asked', ...named, ...body },
    { ...rules, defaults: { ...rules.defaults, trace } },
  ) as Clean<DecisionAsked>
  const stub = c.env.SCOPE.getByName(scope)
  const accepted = await stub.accept([asked], 'http')
  if (!accepted.ok) throw inboxFull(scope, accepted)
  if (accepted.receipts[0]?.status === 'duplicate') await repeat(stub, asked, principal.name)
  const { settled, records } = await stub.outcomes([asked.id], timeout_ms)
  const [record] = records
  if (!settled || !record) {
    const detail = `The decision ${asked.id} has no answer after ${timeout_ms} ms: ${record?.waiting?.detail ?? 'the model was asked'}.`
    throw refusal('decision-pending', detail, { extension: { id: asked.id }, headers: { 'Retry-After': '1' } })
  }
  return responseTo(asked, record)
}

/** The id of an event includes the caller's key, so that callers do not share idempotency keys. */
const hashOf = (value: unknown): string => jsonHash(value, 32)

/** The same key must ask the same. A failed decision is asked again. */
async function repeat(stub: ScopeApi, { id, request_hash }: DecisionAsked, by: string): Promise<void> {
  const first = await stub.event(id)
  if (first && (!isAsked(first.event) || first.event.request_hash !== request_hash)) {
    throw conflict('idempotency-key-reused', 'The Idempotency-Key was used for another request. Use a new key for each request.')
  }
  if (first?.status === 'dead_lettered') await stub.reopen([id], by)
}

type DecisionResponse = z.infer<typeof decisionResponse>

function responseTo({ id, questions }: DecisionAsked, { outcome, trace_id, error }: EventOutcome): DecisionResponse {
  const none = { input_tokens: 0, output_tokens: 0 }
  if (outcome?.by === 'decision' && outcome.answers) {
    const { answers, model = '', usage = none } = outcome
    return { id, model, answers, usage, reflex: { by: 'model', trace_id } }
  }
  if (outcome?.by === 'reflex' && outcome.action?.action_type === 'reply') {
    const { reflex_id, version, action } = outcome
    const found = answersIn(action.content, questions)
    const model = `reflex/${reflex_id}@${version}`
    if (found.ok) return { id, model, answers: found.answers, usage: none, reflex: { by: 'reflex', trace_id, reflex_id, version } }
  }
  throw refusal('decision-failed', `The decision ${id} has no answer: ${error ?? 'it was cancelled'}.`, { extension: { id, trace_id } })
}
