import type { Api } from '../lib/api.ts'
import type { Page } from '../../src/contract/scope-api.ts'

type Value = string | number | boolean | undefined

/** A path of the API: each part is encoded, and undefined parameters are left out. */
export function route(parts: readonly string[], query: Record<string, Value> = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
  return `/v1/${parts.map((part) => encodeURIComponent(part)).join('/')}${search}`
}

type Listing = { parts: readonly string[]; query?: Record<string, Value>; limit: number; most: number; signal: AbortSignal }

/** Follows the cursors of a list until `limit` items are there. `most`: the API's largest page. */
export async function pages<Item>(api: Api, { parts, query = {}, limit, most, signal }: Listing): Promise<Page<Item>> {
  const items: Item[] = []
  let cursor: string | undefined
  for (;;) {
    const size = Math.min(most, limit - items.length)
    const page = await api.json<Page<Item>>(route(parts, { ...query, limit: size, cursor }), { signal })
    items.push(...page.items)
    if (page.next_cursor === null || items.length >= limit) return { items, next_cursor: page.next_cursor }
    cursor = page.next_cursor
  }
}
