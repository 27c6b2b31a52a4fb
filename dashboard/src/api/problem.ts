import type { z } from 'zod'
import type { problem } from '../../../src/contract/problem.ts'

/** Why a request failed, as the API says it. `status` is 0 if no server answered. */
export type ApiProblem = z.infer<typeof problem>
/** An expected outcome: problems are data, and no call throws. */
export type Answer<Value> = { ok: true; value: Value } | { ok: false; problem: ApiProblem }

export const failed = (title: string, detail: string): { ok: false; problem: ApiProblem } => ({
  ok: false,
  problem: { type: 'about:blank', title, status: 0, detail },
})

/** The JSON that somebody wrote. */
export function written(text: string): Answer<unknown> {
  try {
    return { ok: true, value: JSON.parse(text) }
  } catch (error) {
    return failed('This is not JSON', String(error))
  }
}

export function problemFrom(status: number, text: string): ApiProblem {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null && 'detail' in parsed && 'title' in parsed) return { status, ...parsed } as ApiProblem
  } catch {
    // A proxy between the page and the Worker may answer with a page of its own.
  }
  return { type: 'about:blank', title: `HTTP ${status}`, status, detail: text.slice(0, 300) || 'The server gave no reason.' }
}
