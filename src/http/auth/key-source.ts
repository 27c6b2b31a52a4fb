import { createKeyCache, type KeyCache } from './key-cache.ts'
import type { KeySource } from './middleware.ts'
import type { Env } from '../../env.ts'
import type { KeyRecord } from './authenticate.ts'
import { anyKey, findKey } from '../../store/access/keys.ts'
import { storeOf } from '../../store/store.ts'

/** How long the answer to "is there any key?" is used: it only words a refusal. */
const ANY_KEY_MS = 5000

let cache: KeyCache<KeyRecord> | undefined
let any: { until: number; found: boolean } | undefined

export const keySource: KeySource = (env: Env) => {
  cache ??= createKeyCache((id) => findKey(storeOf(env), id), Date.now)
  return { keys: cache.find, knows: cache.knows, any_key: () => isAnyKey(env) }
}

async function isAnyKey(env: Env): Promise<boolean> {
  if (any && Date.now() < any.until) return any.found
  any = { found: await anyKey(storeOf(env)), until: Date.now() + ANY_KEY_MS }
  return any.found
}

export const forgetKey = (id: string): void => cache?.forget(id)
