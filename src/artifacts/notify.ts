import type { Env } from '../env.ts'
import { warn } from '../base/warn.ts'
import { scopesUsing } from '../store/artifacts/feed.ts'
import { storeOf } from '../store/store.ts'

/** Scopes notified immediately; the others poll. */
const MOST_NOTIFIED = 100

/** Notifies the scopes that use a reflex, but not `except`. Unreachable scopes poll later. */
export async function notifyScopes(env: Env, id: string, except?: string): Promise<void> {
  const scopes = (await scopesUsing(storeOf(env), id, MOST_NOTIFIED)).filter((scope) => scope !== except)
  const answers = await Promise.allSettled(scopes.map(async (scope) => env.SCOPE.getByName(scope).reflexesChanged([id])))
  for (const [index, answer] of answers.entries()) {
    if (answer.status === 'fulfilled') continue
    warn({ message: 'failed to notify a scope of a reflex; it will poll', scope: scopes[index], id, error: answer.reason })
  }
}
