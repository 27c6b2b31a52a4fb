import type { Recording } from '../protocol/reflex.ts'
import type { KeyOf } from '../protocol/reflex.ts'
import { Evaluation, type EvaluationReport } from './evaluation.ts'
import type { ReflexContext } from './reflex-context.ts'
import { runReflex } from './run-reflex.ts'
import type { Program, Sandbox } from './sandbox.ts'

/** In all, for one evaluation. */
export const evaluationLimits = { contexts: 5000, fuel: 400_000_000 } as const

/** Recordings as JSON text, oldest first; `next` is the `after` of the next page, null where there is none. */
export type RecordingPage = { recordings: string[]; next: number | null }
type Options = {
  sandbox: Sandbox
  program: Program
  keyOf: KeyOf
  read: (after: number) => Promise<RecordingPage>
  limits?: { contexts: number; fuel: number }
}

/** Runs a reflex on what a scope has recorded, acting on nothing. `truncated`: it came to a limit, and there was more. */
export async function evaluateRecordings({ sandbox, program, keyOf, read, limits = evaluationLimits }: Options) {
  const evaluation = new Evaluation(keyOf)
  let left: { contexts: number; fuel: number } = { ...limits }
  let after: number | null = 0
  while (after !== null) {
    const page: RecordingPage = await read(after)
    for (const text of page.recordings) {
      if (left.contexts <= 0 || left.fuel <= 0) return { ...evaluation.report(), truncated: true }
      const { context, ...recording } = JSON.parse(text) as Recording & { context: ReflexContext }
      const run = runReflex(sandbox, program, context)
      evaluation.add(recording, run)
      left = { contexts: left.contexts - 1, fuel: left.fuel - run.fuel }
    }
    after = page.next
  }
  return { ...evaluation.report(), truncated: false } satisfies EvaluationReport & { truncated: boolean }
}
