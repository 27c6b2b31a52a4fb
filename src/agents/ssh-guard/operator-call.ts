import type { Context } from 'hono'
import type { AuthEnv } from '../../http/auth/middleware.ts'
import type { OperatorCall } from '../../contract/scope-api.ts'
import { traceContextOf } from '../../events/traceparent.ts'
import { conflict, unavailable } from '../../http/problems/refusals.ts'

/**
 * Calls a tool of a scope's agent on behalf of an operator. `what` and `done` word the error: "The
 * block of 203.0.113.7", "lifted".
 */
export async function operatorCall(
  { env, req, var: { principal } }: Pick<Context<AuthEnv>, 'env' | 'req' | 'var'>,
  scope: string,
  { what, done, ...call }: OperatorCall & { what: string; done: string },
): Promise<void> {
  const called = await env.SCOPE.getByName(scope).callTool({ ...call, trace: traceContextOf(req.header('traceparent')) }, principal.name)
  if (called.ok) return
  switch (called.reason) {
    case 'no_tool':
      throw conflict('no-such-tool', `${what} cannot be ${done}: ${called.detail}.`)
    case 'failed':
      break
  }
  throw unavailable(`${what} could not be ${done}: ${called.detail}. Try again.`)
}
