import type { Env } from '../bindings.ts'
import type { ScopeApi } from '../protocol/scope-api.ts'

/** A scope's Durable Object. Its types over RPC refuse `unknown`, which JSON fields are. */
export function scopeStub(env: Env, scope: string): ScopeApi & Pick<Fetcher, 'fetch'> {
  return env.SCOPE.getByName(scope) as unknown as ScopeApi & Pick<Fetcher, 'fetch'>
}
