import type { CallKeys, Recording, ToolCall } from '../contract/reflex.ts'
import { Evaluation, type EvaluationReport } from './evaluation.ts'
import type { ReflexContext } from './reflex-context.ts'
import { runReflex, type ReflexRun } from './run-reflex.ts'
import type { Program, Sandbox } from './sandbox.ts'

/** In all, for one evaluation. */
export const evaluationLimits = { contexts: 5000, fuel: 400_000_000 } as const

/** Recordings as JSON text, oldest first; `next` is the `after` of the next page, null where there is none. */
export type RecordingPage = { recordings: string[]; next: number | null }
type Options = {
  sandbox: Sandbox
  program: Program
  /** The scope names the calls: it alone knows all of its tools. */
  identify: (calls: ToolCall[]) => Promise<(CallKeys | null)[]>
  read: (after: number) => Promise<RecordingPage>
  limits?: { contexts: number; fuel: number }
}

/** Runs a reflex on a scope's recordings, without acting. `truncated`: a limit ended it before the last one. */
export async function evaluateRecordings({ sandbox, program, identify, read, limits = evaluationLimits }: Options) {
  const evaluation = new Evaluation()
  let left: { contexts: number; fuel: number } = { ...limits }
  let after: number | null = 0
  while (after !== null) {
    const page: RecordingPage = await read(after)
    const ran: Ran[] = []
    for (const text of page.recordings) {
      if (left.contexts <= 0 || left.fuel <= 0) break
      const { context, ...recording } = JSON.parse(text) as Recording & { context: ReflexContext }
      const run = runReflex(sandbox, program, context)
      ran.push({ recording, run })
      left = { contexts: left.contexts - 1, fuel: left.fuel - run.fuel }
    }
    await addAll(evaluation, ran, identify)
    if (ran.length < page.recordings.length) return { ...evaluation.report(), truncated: true }
    after = page.next
  }
  return { ...evaluation.report(), truncated: false } satisfies EvaluationReport & { truncated: boolean }
}

type Ran = { recording: Omit<Recording, 'context'>; run: ReflexRun }

/** Asks the scope once for all calls of a page that have a decision to be compared with. */
async function addAll(evaluation: Evaluation, ran: readonly Ran[], identify: Options['identify']): Promise<void> {
  const calls = ran.map(({ recording, run }) =>
    recording.decision !== null && run.action?.action_type === 'call_tool' ? run.action : null,
  )
  const asked = calls.filter((call) => call !== null)
  const keys = asked.length === 0 ? [] : await identify(asked.map(({ tool, args }) => ({ tool, args })))
  const keysOf = new Map(asked.map((call, index) => [call, keys[index] ?? null]))
  for (const [index, { recording, run }] of ran.entries()) {
    const call = calls[index]
    evaluation.add(recording, run, call ? (keysOf.get(call) ?? null) : null)
  }
}
