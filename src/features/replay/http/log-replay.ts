import type { Context } from 'hono'
import { warn } from '../../../base/warn.ts'
import type { ReplayNote, ScopeApi } from '../../../contract/scope-api.ts'
import { traceContextOf } from '../../../events/traceparent.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'

/**
 * Notes in the log of a scope that somebody replayed it. The entry has a trace of its own, and a
 * replay does not fail because its note could not be written.
 */
export async function logReplay(c: Context<AuthEnv>, note: ReplayNote, scope = c.var.scope): Promise<void> {
  const stub: Pick<ScopeApi, 'replayed'> = c.env.SCOPE.getByName(scope)
  try {
    await stub.replayed(note, c.var.principal.name, traceContextOf(c.req.header('traceparent')))
  } catch (error) {
    warn({ message: 'A replay could not be logged', scope, error })
  }
}
