import { parseAction, type Action } from '../contract/action.ts'
import type { ContextJson } from './context-json.ts'
import type { ReflexContext } from './reflex-context.ts'
import type { Program, Run, Sandbox } from './sandbox.ts'

/** What a reflex did: the action where `reason` is `fired`, else null and why. */
export type ReflexRun = Omit<Run, 'value'> & { action: Action | null }

/** Runs a reflex; whatever its code does, this returns. */
export function runReflex(sandbox: Sandbox, program: Program, context: ReflexContext | ContextJson): ReflexRun {
  const { value, ...run } = sandbox.run(program, context)
  if (run.reason !== 'fired') return { action: null, ...run }
  const parsed = parseAction(value)
  return parsed.ok ? { action: parsed.action, ...run } : { action: null, ...run, reason: 'invalid_action', error: parsed.error }
}
