import {
  createMcpHandler,
  isLegacyRequest,
  type McpRequestContext,
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { problemOf } from '../../../../http/problems/problem.ts'

/** Runs a part of the work and records its error. */
export type Trying = <Answer>(work: () => Promise<Answer>) => Promise<Answer>
export type Era = McpRequestContext['era']
/** Makes the server of one message. */
type ServerFor = (trying: Trying, era: Era) => McpServer

/**
 * Answers one message with its own server, in the version of the protocol that it was sent in.
 * Errors within `trying` are handled as on any other route: the SDK would respond 200 and expose
 * them.
 */
export async function answerOnce(serverFor: ServerFor, request: Request, parsedBody: unknown): Promise<Response> {
  const failures: unknown[] = []
  let begun = false
  const trying: Trying = async (work) => {
    try {
      return await work()
    } catch (error) {
      if (error instanceof ProtocolError) throw error
      // A stream has its status already.
      if (begun) throw inStream(error, request)
      failures.push(error)
      throw error
    }
  }
  const response = (await isLegacyRequest(request, parsedBody))
    ? await answerLegacy(serverFor(trying, 'legacy'), request, parsedBody)
    : await createMcpHandler(({ era }) => serverFor(trying, era), { legacy: 'reject', maxSubscriptions: 0 }).fetch(request, { parsedBody })
  begun = true
  if (failures.length > 0) throw failures[0]
  return response
}

function inStream(error: unknown, { method, url }: Request): ProtocolError {
  const { problem, instance } = problemOf(error, { method, path: new URL(url).pathname })
  return new ProtocolError(ProtocolErrorCode.InternalError, problem.detail ?? problem.title, { type: problem.type, instance })
}

/** The SDK's own fallback would answer as a stream of events. */
async function answerLegacy(server: McpServer, request: Request, parsedBody: unknown): Promise<Response> {
  const may_stream = progressAsked.safeParse(parsedBody).success
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !may_stream })
  await server.connect(transport)
  const response = await transport.handleRequest(request, { parsedBody })
  return may_stream ? onceNeeded(response) : response
}

const progressAsked = z.object({ params: z.object({ _meta: z.object({ progressToken: z.union([z.string(), z.number()]) }) }) })

/** A stream whose first message is the answer becomes JSON, as the SDK does in later versions. */
async function onceNeeded({ body, status, headers }: Response): Promise<Response> {
  if (!body || headers.get('Content-Type')?.startsWith('text/event-stream') !== true) return new Response(body, { status, headers })
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let read = ''
  let data: string | undefined
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    read += decoder.decode(part.value, { stream: true })
    data = /^data: (.+)$/m.exec(read.slice(0, read.lastIndexOf('\n\n') + 1))?.[1]
    if (data !== undefined) break
  }
  const isNotified = data !== undefined && 'method' in (JSON.parse(data) as object)
  if (data !== undefined && !isNotified) {
    await reader.cancel()
    return new Response(data, { status, headers: { 'Content-Type': 'application/json' } })
  }
  return new Response(continued(read, reader), { status, headers })
}

/** A stream of the text that was read, and then of the rest. */
const continued = (read: string, reader: ReadableStreamDefaultReader<Uint8Array>): ReadableStream<Uint8Array> =>
  new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(read)),
    pull: async (controller) => {
      const { done, value } = await reader.read()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    cancel: (reason) => reader.cancel(reason),
  })
