import { z } from 'zod'
import { texts } from '../../../../contract/operation.ts'
import { problem } from '../../../../contract/problem.ts'

/** The SDK validates the rest. It also accepts batches, which MCP dropped on 2025-06-18. */
export const message = z.looseObject(
  { jsonrpc: z.literal('2.0'), id: z.union([z.string(), z.int()]).optional(), method: z.string().optional() },
  'it is one JSON-RPC message, not a batch',
)

/** An answer to a message whose id is not known has the id null. */
export const rpcAnswer = message.extend({ id: z.union([z.string(), z.int(), z.null()]).optional() })

/** A message by POST, and the answers of the transport. */
export const rpc = {
  body: message,
  example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  answers: {
    200: [rpcAnswer, 'The response to a request; a stream of messages if it asks for progress, and there is some.', texts.events],
    202: [null, 'The notification was accepted.'],
  },
  refusals: {
    400: [rpcAnswer, 'The request is invalid.', { 'application/problem+json': problem }],
    406: [rpcAnswer, 'Accept must name application/json and text/event-stream.'],
  },
} as const
