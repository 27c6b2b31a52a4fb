import { useSignal } from '@preact/signals'
import { useCallback, useLayoutEffect, useRef } from 'preact/hooks'
import { gapsOf, type PageGaps } from '../../../src/contract/lists/packs.ts'
import { returns } from './away.ts'
import { cache, cached } from './cache.ts'
import type { ApiProblem } from './problem.ts'
import { get } from './request.ts'

type Page<Item> = { items: Item[]; next_cursor: string | null } & PageGaps
/**
 * `items` undefined: the first page is not there yet. `more`: there are older ones. `gaps`: lines
 * about what the pages lack.
 */
export type Pages<Item> = {
  items: Item[] | undefined
  more: boolean
  gaps: readonly string[]
  problem: ApiProblem | null
  loading: boolean
  loadMore: () => void
  reload: () => void
}
type PagesState<Item> = {
  path: string | null
  items: Item[] | undefined
  next: string | null
  gaps: readonly string[]
  problem: ApiProblem | null
  loading: boolean
}

/**
 * A list of the API by pages. `path` has its filters in the query, without a cursor. With
 * `every_ms` the first page is loaded again while it is the only one.
 */
export function usePages<Item>(path: string | null, { every_ms }: { every_ms?: number } = {}): Pages<Item> {
  const fresh = (): PagesState<Item> => {
    const known = path === null ? undefined : cached<Page<Item>>(path)
    return {
      path,
      items: known?.items,
      next: known?.next_cursor ?? null,
      gaps: known ? gapsOf(known) : [],
      problem: null,
      loading: path !== null,
    }
  }
  const state = useSignal<PagesState<Item>>(fresh())
  const loaded = useRef(0)
  const load = useCallback(
    async (cursor: string | null, signal?: AbortSignal) => {
      if (path === null) return
      state.value = { ...state.peek(), loading: true }
      const address = cursor === null ? path : `${path}${path.includes('?') ? '&' : '?'}cursor=${encodeURIComponent(cursor)}`
      const answer = await get<Page<Item>>(address, signal)
      const known = state.peek()
      if (signal?.aborted || known.path !== path) return
      if (!answer.ok) {
        state.value = { ...known, problem: answer.problem, loading: false }
        return
      }
      if (cursor === null) {
        cache(path, answer.value)
        loaded.current = answer.value.items.length
      }
      // A second click on "more" may have loaded the page already.
      if (cursor !== null && known.next !== cursor) return
      const items = cursor === null ? answer.value.items : [...(known.items ?? []), ...answer.value.items]
      const gaps = [...new Set([...(cursor === null ? [] : known.gaps), ...gapsOf(answer.value)])]
      state.value = { path, items, next: answer.value.next_cursor, gaps, problem: null, loading: false }
    },
    [path],
  )
  const back = returns.value
  useLayoutEffect(() => {
    if (state.peek().path !== path) state.value = fresh()
    const stop = new AbortController()
    void load(null, stop.signal)
    const again = () => {
      const { items, path: shown } = state.peek()
      if (!document.hidden && shown === path && (items?.length ?? 0) <= loaded.current) void load(null, stop.signal)
    }
    const timer = every_ms === undefined ? undefined : setInterval(again, every_ms)
    return () => {
      stop.abort()
      clearInterval(timer)
    }
  }, [load, every_ms, back])
  const { items, next, ...rest } = state.value.path === path ? state.value : fresh()
  return { ...rest, items, more: next !== null, loadMore: () => void (next !== null && load(next)), reload: () => void load(null) }
}
