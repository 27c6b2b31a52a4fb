import type { Env } from '../env.ts'
import { messageOf } from '../base/error-text.ts'
import { scopesUsing } from '../store/reflex-uses.ts'
import { warn } from '../base/warn.ts'

/** How many scopes are told of a change at once; the others look by themselves. */
const MOST_TOLD = 100

/** A change acts at once in the scopes that use the reflex, `except` for the one that made it. Where one cannot be told, it looks by itself a little later. */
export async function tellScopes(env: Env, id: string, except?: string): Promise<void> {
  const scopes = (await scopesUsing(env.DB, id, MOST_TOLD)).filter((scope) => scope !== except)
  const told = await Promise.allSettled(scopes.map(async (scope) => env.SCOPE.getByName(scope).reflexesChanged([id])))
  for (const [index, outcome] of told.entries()) {
    if (outcome.status === 'fulfilled') continue
    const error = messageOf(outcome.reason)
    warn({ message: 'a scope could not be told of a reflex, it will look by itself', scope: scopes[index], id, error })
  }
}
