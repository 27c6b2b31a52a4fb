import { createMiddleware } from 'hono/factory'
import { Problem } from '../../../../contract/problem.ts'
import type { AuthEnv } from '../../../../http/auth/middleware.ts'
import { jsonBody } from '../../../../http/body/json-body.ts'
import { message } from '../mcp/message.ts'

const PARSE_ERROR = -32_700
const INVALID_REQUEST = -32_600

/** A JSON body that is one message. Any other gets an error of JSON-RPC, as its clients expect. */
export const messageBody = createMiddleware<AuthEnv>(async (c, next) => {
  const failed = (code: number, why: string) => c.json({ jsonrpc: '2.0', id: null, error: { code, message: why } }, 200)
  try {
    await jsonBody(c, () => Promise.resolve())
  } catch (error) {
    if (!(error instanceof Problem) || !error.type.endsWith(':malformed-body')) throw error
    return failed(PARSE_ERROR, `Parse error: ${error.detail}`)
  }
  const parsed = message.safeParse(JSON.parse(await c.req.text()))
  if (!parsed.success) return failed(INVALID_REQUEST, 'Invalid request: send one message of JSON-RPC 2.0, with jsonrpc, id and method.')
  return next()
})
