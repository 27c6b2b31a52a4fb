import type { Env } from '../bindings.ts'
import type { ScopeApi } from '../protocol/scope-api.ts'

type ScopeStub = ScopeApi & Pick<Fetcher, 'fetch'>

/** A scope's Durable Object. The platform's types of an RPC refuse `unknown`, which JSON fields are. */
export function scopeStub(env: Env, scope: string): ScopeStub
export function scopeStub(env: Env, scope: string): unknown {
  return env.SCOPE.getByName(scope)
}
