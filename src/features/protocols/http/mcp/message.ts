import { z } from '@hono/zod-openapi'
import { problem } from '../../../../contract/problem.ts'
import { json, problems } from '../../../../http/describe/describe.ts'

/** The SDK validates the rest. It also accepts batches, which MCP dropped on 2025-06-18. */
export const message = z.looseObject(
  { jsonrpc: z.literal('2.0'), id: z.union([z.string(), z.int()]).optional(), method: z.string().optional() },
  'it is one JSON-RPC message, not a batch',
)

/** An answer to a message whose id is not known has the id null. */
export const rpcAnswer = message.extend({ id: z.union([z.string(), z.int(), z.null()]).optional() })

/** Errors of the protocol itself; before it, a request is refused as on any other route. */
const refused: Record<string, { schema: z.ZodType }> = {
  'application/json': { schema: rpcAnswer },
  'application/problem+json': { schema: problem },
}

export const mcpResponses = {
  ...problems(413, 415),
  200: {
    description: 'The response to a request; a stream of messages if it asks for progress, and there is some.',
    content: { 'application/json': { schema: rpcAnswer }, 'text/event-stream': { schema: z.string() } },
  },
  202: { description: 'The notification was accepted.' },
  400: { description: 'The request is invalid.', content: refused },
  406: json(rpcAnswer, 'Accept must name application/json and text/event-stream.'),
}
