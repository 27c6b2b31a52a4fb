import { sampleContext, type ReflexContext } from './reflex-context.ts'
import { runReflex, type ReflexRun } from './run-reflex.ts'
import type { Program, Sandbox } from './sandbox.ts'
import type { CodeError } from './static-check.ts'

export type DryRun = { ok: true; run: ReflexRun } | { ok: false; run: ReflexRun; errors: CodeError[] }

/** Runs a reflex on a context without acting. It passes where it returns an action or null. */
export function dryRun(sandbox: Sandbox, program: Program, context: ReflexContext = sampleContext): DryRun {
  const run = runReflex(sandbox, program, context)
  if (run.reason === 'fired' || run.reason === 'null') return { ok: true, run }
  const line = Number(/\(line (\d+)\)$/.exec(run.error ?? '')?.[1] ?? 1)
  return { ok: false, run, errors: [{ line, column: 1, message: `on the sample context: ${run.error}` }] }
}
