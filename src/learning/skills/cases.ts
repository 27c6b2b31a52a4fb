import { isJsonFields, type Json } from '../../base/json.ts'
import type { Slot } from './generalise.ts'
import type { Occurrence } from './mine.ts'
import type { UnitCase } from '../../skills/ci/run-case.ts'

const MOST_CASES = 20

/** The latest occurrences, with the values that the inputs had in them. */
export function casesOf(occurrences: readonly Occurrence[], slots: readonly Slot[]): UnitCase[] {
  const all = occurrences.map(({ trace, calls }, index): UnitCase => {
    const { project = null, env = [], toolset = null, repo = null } = trace.place
    const { ctx, env: found, work, policy } = trace.blackboard ?? {}
    const parts = Object.entries({ ctx, env: found, work, policy }).filter(([, part]) => part !== undefined && isJsonFields(part))
    return {
      name: trace.trace_id,
      inputs: Object.fromEntries(slots.map(({ name, values }) => [name, values[index] ?? null])),
      blackboard: Object.fromEntries(parts),
      text: trace.goal?.text ?? '',
      goal_labels: trace.goal?.labels ?? [],
      place: { project, env: [env].flat(), toolset, repo },
      calls: calls.map(({ name, input, output, cost_usd, duration_ms }) => ({
        tool: name,
        input,
        output: (output ?? null) as Json,
        cost_usd,
        duration_ms,
      })),
    }
  })
  return all.slice(-MOST_CASES)
}
