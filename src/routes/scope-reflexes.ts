import type { Env } from '../bindings.ts'
import { messageOf } from '../protocol/message-of.ts'
import type { ReflexMetrics } from '../protocol/reflex-metrics.ts'
import type { RecordingPage } from '../reflexes/evaluate-recordings.ts'
import { scopesUsing } from '../store/reflex-uses.ts'

/** How many scopes are told of a change at once; the others look by themselves. */
const MOST_TOLD = 100

/** What a scope offers about its reflexes, over RPC. `since` in ms; `after` is a recording's `seq`. */
export interface ScopeReflexes {
  /** It looks again what its chain's references to these stand for. */
  reflexesChanged(ids: string[]): Promise<unknown>
  recordings(request: { since: number; after: number; limit: number }): Promise<RecordingPage>
  metrics(): Promise<{ counters: Record<string, number>; reflexes: { reflex_id: string; version: number; metrics: ReflexMetrics }[] }>
}

/** Not yet a part of ScopeApi. */
export const reflexesOf = ({ SCOPE }: Env, scope: string): ScopeReflexes => SCOPE.getByName(scope) as unknown as ScopeReflexes

/** A change acts at once in the scopes that use the reflex. Where one cannot be told, it looks by itself a little later. */
export async function tellScopes(env: Env, id: string): Promise<void> {
  const scopes = await scopesUsing(env.DB, id, MOST_TOLD)
  const told = await Promise.allSettled(scopes.map(async (scope) => reflexesOf(env, scope).reflexesChanged([id])))
  for (const [index, outcome] of told.entries()) {
    if (outcome.status === 'fulfilled') continue
    const error = messageOf(outcome.reason)
    console.warn(
      JSON.stringify({ message: 'a scope could not be told of a reflex, it will look by itself', scope: scopes[index], id, error }),
    )
  }
}
