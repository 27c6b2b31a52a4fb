import type { Agent, AgentDeps } from './define-agent.ts'
import { messageOf } from '../base/error-text.ts'
import type { DecisionContext } from '../core/decision-context.ts'

/** `running`: unfinished calls of `deps.call`, with their tools. */
type Turn = { seen: { context: DecisionContext }; running: ReadonlyMap<Promise<unknown>, string>; warnings: string[] }

const MOST_WARNINGS = 20

/**
 * Returns a trigger's result after all its calls have ended, since the turn's end would cut off an
 * unawaited call as `unknown`. Probable mistakes become warnings in the log.
 */
export async function resultOf(trigger: NonNullable<Agent['trigger']>, turn: Turn, deps: AgentDeps): Promise<unknown> {
  const result = await trigger(turn.seen.context, deps)
  if (result === undefined)
    warn(turn, 'the trigger returned undefined, which counts as null: return a result, or null where there was nothing to do')
  while (turn.running.size > 0) {
    const calls = Array.from(turn.running)
    const ends = await Promise.allSettled(calls.map(([running]) => running))
    for (const [index, [, tool]] of calls.entries()) {
      const end = ends[index]
      const how = end?.status === 'rejected' ? `it failed: ${messageOf(end.reason)}` : 'it ended well'
      warn(turn, `deps.call("${tool}") was still running when the trigger returned; ${how}. Await each call`)
    }
  }
  return result
}

function warn({ warnings }: Turn, warning: string): void {
  if (warnings.length < MOST_WARNINGS && !warnings.includes(warning)) warnings.push(warning)
}
