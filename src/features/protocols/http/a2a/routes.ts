import { AgentCard } from '@a2a-js/sdk'
import { JsonRpcTransportHandler, ServerCallContext, validateVersion } from '@a2a-js/sdk/server'
import { A2AError, RequestMalformedError } from '@a2a-js/sdk/errors'
import type { Context } from 'hono'
import { z } from 'zod'
import { withBeats } from '../../../../base/beats.ts'
import { warn } from '../../../../base/warn.ts'
import { DEFAULT_SCOPE, scopeName } from '../../../../core/event.ts'
import { operations, texts } from '../../../../contract/operation.ts'
import { scopePath } from '../../../../contract/operations/shared.ts'
import type { AuthEnv } from '../../../../http/auth/middleware.ts'
import { resource, serve } from '../../../../http/describe/operation.ts'
import { message, rpcAnswer } from '../mcp/message.ts'
import { agentCard, PROTOCOL_VERSION } from './card.ts'
import { ScopeAgent } from './handler.ts'
import { createMiddleware } from 'hono/factory'
import { Problem } from '../../../../contract/problem.ts'
import { jsonBody } from '../../../../http/body/body.ts'

const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600
const INTERNAL_ERROR = -32_603
const NO_METHOD = -32_601

/** Nothing is sent without an answer: A2A has no notifications. */
const rpcRequest = message.required({ id: true, method: true })

/** A JSON body that is one message. Any other gets an error of JSON-RPC, as its clients expect. */
const messageBody = createMiddleware<AuthEnv>(async (c, next) => {
  const failed = (code: number, why: string) => c.json({ jsonrpc: '2.0', id: null, error: { code, message: why } }, 200)
  try {
    await jsonBody(c, () => Promise.resolve())
  } catch (error) {
    if (!(error instanceof Problem) || !error.type.endsWith(':malformed-body')) throw error
    return failed(PARSE_ERROR, `Parse error: ${error.detail}`)
  }
  const parsed = rpcRequest.safeParse(JSON.parse(await c.req.text()))
  if (!parsed.success) return failed(INVALID_REQUEST, 'Invalid request: send one message of JSON-RPC 2.0, with jsonrpc, id and method.')
  return next()
})

const operation = operations({ tag: 'Agents', roles: null })

const card = operation('get /.well-known/agent-card.json', 'getAgentCard', 'Get the A2A card of an agent', {
  description: 'The endpoint of a scope for other agents (A2A 1.0), and that it needs a key. It names neither events nor skills.',
  query: z.object({ scope: scopeName.default(DEFAULT_SCOPE) }),
  answers: { 200: [z.record(z.string(), z.unknown()), 'The card.'] },
  problems: [401, 403, 429],
})

const a2a = operation('post /v1/scopes/{scope}/a2a', 'callAgent', 'Talk to an agent over A2A', {
  description:
    'JSON-RPC of A2A 1.0: `SendMessage` and `SendStreamingMessage` (publisher), `GetTask`, `ListTasks`, `SubscribeToTask` (viewer), `CancelTask` (operator), `GetExtendedAgentCard`. ' +
    'A message is an event whose id is its `messageId`: one that is sent again is dropped. A task is a view of that event. docs/a2a.md describes it.',
  roles: ['viewer', 'publisher'],
  scoped: true,
  params: scopePath,
  body: message,
  takes: 'own',
  example: { jsonrpc: '2.0', id: 1, method: 'ListTasks', params: {} },
  answers: { 200: [rpcAnswer, 'The response, or a stream of them.', texts.events] },
})

export const a2aRoutes = resource().openapiRoutes([
  serve(card, (c, { query: { scope } }) => {
    const shown = AgentCard.toJSON(agentCard(new URL(c.req.url).origin, scope)) as Record<string, unknown>
    return c.json(shown, 200, { 'Cache-Control': 'max-age=300', 'Access-Control-Allow-Origin': '*' })
  }),
  serve(a2a, (c, { body }) => called(c, body), messageBody),
])

async function called(c: Context<AuthEnv>, request: Message): Promise<Response> {
  const failures: unknown[] = []
  const agent = new ScopeAgent(c, (error) => failures.push(error))
  try {
    validateVersion(c.req.header('A2A-Version') || PROTOCOL_VERSION, await agent.getAgentCard())
    const answer = await new JsonRpcTransportHandler(agent).handle(request, new ServerCallContext())
    // As on every other route, an error that is not of the protocol is a problem.
    if (failures.length > 0) throw failures[0]
    const code = codeOf(answer)
    if (code === INTERNAL_ERROR) throw new RequestMalformedError('params: a value has not the form that A2A gives it.')
    if (code === NO_METHOD) return Response.json({ jsonrpc: '2.0', id: request.id, error: { code, message: noMethod(request.method) } })
    return Symbol.asyncIterator in answer ? await streamed(answer, request.id) : Response.json(answer)
  } catch (error) {
    if (error instanceof A2AError) return Response.json(failed(request.id, error))
    throw error
  }
}

/** The SDK reads the parameters without a schema, and fails on what it cannot read. */
const codeOf = (answer: object): number | undefined => ('error' in answer ? (answer.error as { code?: number }).code : undefined)

const noMethod = (name = ''): string =>
  `There is no method ${name.slice(0, 64)}: A2A ${PROTOCOL_VERSION} has SendMessage, SendStreamingMessage, GetTask, ListTasks, SubscribeToTask, CancelTask and GetExtendedAgentCard.`

type Message = z.infer<typeof message>
type Id = Message['id']
type Answers = AsyncGenerator<unknown, void, undefined>

const failed = (id: Id, error: unknown) => ({
  jsonrpc: '2.0',
  id: id ?? null,
  error: JsonRpcTransportHandler.mapToJSONRPCError(error instanceof A2AError ? error : new Error('Internal error')),
})

/** Proxies close a connection on which nothing is sent for a minute. */
const BEAT_MS = 15_000

/** Errors before the first response are thrown; later ones end the stream with an error. */
async function streamed(answers: Answers, id: Id): Promise<Response> {
  const first = await answers.next()
  const encoder = new TextEncoder()
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const frame = (value: unknown) => encoder.encode(value === null ? ': the task continues\n\n' : `data: ${JSON.stringify(value)}\n\n`)
  void write(writable.getWriter(), frame, { first, answers: withBeats(answers, BEAT_MS), id })
  return new Response(readable, { headers: { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' } })
}

async function write(
  writer: WritableStreamDefaultWriter<Uint8Array>,
  frame: (value: unknown) => Uint8Array,
  { first, answers, id }: { first: IteratorResult<unknown, void>; answers: AsyncGenerator<unknown, void>; id: Id },
): Promise<void> {
  try {
    if (!first.done) await writer.write(frame(first.value))
    for await (const answer of answers) await writer.write(frame(answer))
  } catch (error) {
    if (!(error instanceof A2AError)) warn({ message: 'a stream of A2A failed', error })
    await writer.write(frame(failed(id, error))).catch(() => {})
  }
  // The client may be gone.
  await writer.close().catch(() => {})
}
