import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { Answer, ApiProblem } from './problem.ts'

type ActionButton<Input, Value> = {
  run: (input: Input) => Promise<Answer<Value>>
  busy: boolean
  problem: ApiProblem | null
  clear: () => void
}

/**
 * A call that somebody starts: it runs once at a time, and its problem is shown where it was
 * started. `left` is for a long report: it is stopped when nobody looks at it any more.
 */
export function useAction<Input, Value>(call: (input: Input, left: AbortSignal) => Promise<Answer<Value>>): ActionButton<Input, Value> {
  const leaving = useMemo(() => new AbortController(), [])
  useEffect(() => () => leaving.abort(), [])
  const busy = useSignal(false)
  const problem = useSignal<ApiProblem | null>(null)
  const run = async (input: Input) => {
    busy.value = true
    const answer = await call(input, leaving.signal)
    busy.value = false
    problem.value = answer.ok ? null : answer.problem
    return answer
  }
  return { run, busy: busy.value, problem: problem.value, clear: () => (problem.value = null) }
}

/** The trimmed texts of a form's fields, by name. Cancels the navigation of the browser. */
export function submitted(event: SubmitEvent): (name: string) => string {
  event.preventDefault()
  const fields = event.currentTarget instanceof HTMLFormElement ? new FormData(event.currentTarget) : null
  return (name) => {
    const value = fields?.get(name)
    return typeof value === 'string' ? value.trim() : ''
  }
}
