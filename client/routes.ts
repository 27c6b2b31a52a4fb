import { hc } from 'hono/client'
import type { FeaturesApp } from '../src/features/index.ts'
import type { PlatformApp } from '../src/http/platform.ts'

type RouteOptions = { fetch?: typeof fetch }

/**
 * A typed client of every route: `client.v1.scopes[':scope'].$get({ param: { scope:
 * inPath('team-a/x') } })`. It returns a Response whose `json()` is typed by status.
 */
export function createClient(base_url: string, key: string, options: RouteOptions = {}) {
  return hc<PlatformApp | FeaturesApp>(base_url, { ...options, headers: { Authorization: `Bearer ${key}` } })
}
