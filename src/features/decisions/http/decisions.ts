import { createHash } from 'node:crypto'
import { z } from '@hono/zod-openapi'
import type { Clean } from '../../../base/secrets.ts'
import { answersIn } from '../agent/answers.ts'
import { canonicalJson } from '../../../base/json.ts'
import { limits } from '../../../base/limits.ts'
import { isAsked, type DecisionAsked } from '../contract/event.ts'
import { decisionRequest, decisionResponse } from '../contract/wire.ts'
import type { EventOutcome } from '../../../contract/event-record.ts'
import type { ScopeApi } from '../../../contract/scope-api.ts'
import { traceContextOf } from '../../../events/traceparent.ts'
import { eventRules, readEvent } from '../../../http/body/parse-events.ts'
import { guard, json, jsonRequest, problems, resource, routes, scopePath } from '../../../http/describe/describe.ts'
import { conflict, inboxFull, refusal } from '../../../http/problems/refusals.ts'

const route = routes('Scopes')
const WAIT_MS = 10_000

const decide = route('post /v1/scopes/{scope}/decisions', 'decide', 'Answer typed questions about a state', {
  description:
    'The decisions API of the providers of decision models: `choice`, `noul` (yes or no) and `score` questions about one state, each answered with ' +
    'probabilities. The scope forwards the request to its decision model and logs it. A reflex that is active in the scope may answer instead; ' +
    'its answer puts all probability on one value. docs/decision-models.md has more. With `Idempotency-Key`, a repeated request gets the first answer; ' +
    'a decision that failed is asked again.',
  ...guard({ roles: ['publisher'], scoped: true, body: 'json' }),
  request: {
    params: scopePath,
    headers: z.object({
      'idempotency-key': z
        .string()
        .min(1)
        .max(256)
        .optional()
        .describe('Identifies the request among those of your key, so that it can be repeated.'),
    }),
    query: z.object({
      timeout_ms: z.coerce.number<string>().int().min(1).max(limits.wait_ms).default(WAIT_MS).describe('Maximum wait for the answer.'),
    }),
    body: jsonRequest(decisionRequest, {
      model: 'jev-latest',
      state: 'I was charged twice.',
      questions: {
        team: {
          type: 'choice',
          instructions: 'Who handles this?',
          criteria: { billing: 'Charges and refunds', support: 'Other requests' },
        },
        refund: { type: 'noul', instructions: 'Does the customer ask for money back?' },
      },
    }),
  },
  responses: { 200: json(decisionResponse, 'The answers.'), ...problems(400, 409, 413, 415, 502, 504) },
})

export const decisionRoutes = resource().openapi(decide, async (c) => {
  const { scope, principal } = c.var
  const { timeout_ms } = c.req.valid('query')
  const { 'idempotency-key': key } = c.req.valid('header')
  const body = c.req.valid('json')
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
  return c.json(responseTo(asked, record), 200)
})

/** The id of an event includes the caller's key, so that callers do not share idempotency keys. */
const hashOf = (value: unknown): string => createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, 32)

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
