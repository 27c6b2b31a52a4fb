import type { Env } from '../../env.ts'
import { storeOf } from '../../store/store.ts'
import { redactedFields } from '../../store/scopes.ts'
import { deploymentMask, withoutSecretFields } from '../../traces/keyed-hash.ts'
import { maskOnce, redactor } from '../../traces/redact.ts'

/**
 * Masks what the settings of the scopes hide now, and the usual secret fields: D1 and the archive
 * have events as they were masked when they ended. Asks for the settings of each scope once.
 */
export function redactedNow(env: Env) {
  const usual = (value: unknown): unknown => withoutSecretFields(env, value)
  const known = new Map<string, typeof usual>()
  return async <Shown extends { scope: string | null }>(items: readonly Shown[]): Promise<Shown[]> => {
    const names = [...new Set(items.flatMap(({ scope }) => (scope === null || known.has(scope) ? [] : [scope])))]
    const fields = await redactedFields(storeOf(env), names)
    for (const name of names) {
      const own = fields.get(name)
      known.set(name, own ? redactor(own, maskOnce(deploymentMask(env))) : usual)
    }
    return items.map((item) => ((item.scope === null ? undefined : known.get(item.scope)) ?? usual)(item) as Shown)
  }
}
