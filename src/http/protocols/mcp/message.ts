import { z } from '@hono/zod-openapi'

/** The SDK validates the rest. It also accepts batches, which MCP dropped on 2025-06-18. */
export const message = z.looseObject(
  { jsonrpc: z.literal('2.0'), id: z.union([z.string(), z.int()]).optional(), method: z.string().optional() },
  'it is one JSON-RPC message, not a batch',
)
