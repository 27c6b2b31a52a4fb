import { useSignal } from '@preact/signals'
import { useCallback, useLayoutEffect, useRef } from 'preact/hooks'
import { returns } from './away.ts'
import { cache, cached } from './cache.ts'
import type { ApiProblem } from './problem.ts'
import { get } from './request.ts'

/** `value` is kept while it is loaded again and if that fails; `problem` is of the last attempt. */
export type Data<Value> = { value: Value | undefined; problem: ApiProblem | null; loading: boolean; reload: () => void }
type GetState<Value> = { path: string | null; value: Value | undefined; problem: ApiProblem | null; loading: boolean }

/**
 * The answer of a path of the API. It is loaded again every `every_ms` while the page is visible,
 * and when the server was away. `path` null loads nothing.
 */
export function useGet<Value>(path: string | null, { every_ms }: { every_ms?: number } = {}): Data<Value> {
  const fresh = (): GetState<Value> => ({
    path,
    value: path === null ? undefined : cached<Value>(path),
    problem: null,
    loading: path !== null,
  })
  const state = useSignal<GetState<Value>>(fresh())
  const asked = useRef(0)
  const load = useCallback(
    async (signal?: AbortSignal) => {
      if (path === null) return
      asked.current += 1
      const turn = asked.current
      const answer = await get<Value>(path, signal)
      if (signal?.aborted || turn !== asked.current) return
      if (answer.ok) cache(path, answer.value)
      const value = answer.ok ? answer.value : cached<Value>(path)
      state.value = { path, value, problem: answer.ok ? null : answer.problem, loading: false }
    },
    [path],
  )
  const back = returns.value
  // Before the browser paints: the answer is what the reader waits for.
  useLayoutEffect(() => {
    if (state.peek().path !== path) state.value = fresh()
    const stop = new AbortController()
    void load(stop.signal)
    const timer = every_ms === undefined ? undefined : setInterval(() => document.hidden || void load(stop.signal), every_ms)
    return () => {
      stop.abort()
      clearInterval(timer)
    }
  }, [load, every_ms, back])
  const { value, problem, loading } = state.value.path === path ? state.value : fresh()
  return { value, problem, loading, reload: () => void load() }
}
