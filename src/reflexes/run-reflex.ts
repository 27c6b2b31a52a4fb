import { parseAction } from '../contract/action.ts'
import type { ReflexRun } from '../contract/reflex.ts'
import type { ContextJson } from './context/context-json.ts'
import { type ReflexContext, sampleContext } from './reflex-context.ts'
import type { Program, Sandbox } from './sandbox.ts'
import type { CodeError } from './static-check.ts'

/** Runs a reflex. Always returns, whatever the code does. */
export function runReflex(sandbox: Sandbox, program: Program, context: ReflexContext | ContextJson): ReflexRun {
  const { value, ...run } = sandbox.run(program, context)
  if (run.reason !== 'fired') return { action: null, ...run }
  const parsed = parseAction(value)
  return parsed.ok ? { action: parsed.action, ...run } : { action: null, ...run, reason: 'invalid_action', error: parsed.error }
}

/** The error of a run for those who may not read the code: its text would quote it. */
export const HIDDEN_ERROR = 'it failed, and says no more: its code is hidden'
/** The fuel of hidden code is rounded up to this, or to it times a power of four. */
const LEAST_SHOWN_FUEL = 25_000

/** The run as all readers of a log may see it: some of them may not read sealed code. */
export function shownRun(run: ReflexRun, { sealed }: { sealed: boolean }): ReflexRun {
  if (!sealed) return run
  let fuel = LEAST_SHOWN_FUEL
  while (fuel < run.fuel) fuel *= 4
  return { ...run, error: run.error === null ? null : HIDDEN_ERROR, fuel, duration_us: 0 }
}

type DryRun = { ok: true; run: ReflexRun } | { ok: false; run: ReflexRun; errors: CodeError[] }

/** Runs a reflex on a context without acting. It passes where it returns an action or null. */
export function dryRun(sandbox: Sandbox, program: Program, context: ReflexContext = sampleContext): DryRun {
  const run = runReflex(sandbox, program, context)
  if (run.reason === 'fired' || run.reason === 'null') return { ok: true, run }
  const line = Number(/\(line (\d+)\)$/.exec(run.error ?? '')?.[1] ?? 1)
  return { ok: false, run, errors: [{ line, column: 1, message: `on the sample context: ${run.error}` }] }
}
