import { createKeyCache, type KeyCache } from '../auth/key-cache.ts'
import type { KeySource } from '../auth/middleware.ts'
import type { Env } from '../bindings.ts'
import { anyKey, findKey } from '../store/keys.ts'

let cache: KeyCache | undefined

/** Keys from D1, remembered by this isolate. */
export const keySource: KeySource = (env: Env) => {
  cache ??= createKeyCache((id) => findKey(env.DB, id), Date.now)
  return { keys: cache.find, any_key: () => anyKey(env.DB) }
}

export const forgetKey = (id: string): void => cache?.forget(id)
