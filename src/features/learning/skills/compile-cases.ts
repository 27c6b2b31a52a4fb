import { isJsonFields, type Json } from '../../../base/json.ts'
import type { RecordedCall, UnitCase } from '../../../skills/ci/run-case.ts'
import { madeCalls } from './branches.ts'
import type { PatternSlot } from './generalise.ts'
import { eachCall, type Trace, type TracedAct, type Occurrence } from './trace.ts'

const MOST_CASES = 20

/** The latest occurrences, with the values that the inputs had in them. */
export function casesOf(occurrences: readonly Occurrence[], slots: readonly PatternSlot[]): UnitCase[] {
  const all = occurrences.map((occurrence, index): UnitCase => ({
    ...situationOf(occurrence.trace),
    inputs: Object.fromEntries(slots.map(({ name, values }) => [name, values[index] ?? null])),
    calls: madeCalls(occurrence).flatMap(eachCall).map(recordedCall),
  }))
  return all.slice(-MOST_CASES)
}

/** A case with what a turn found, and without calls. */
export function situationOf(trace: Trace): UnitCase {
  const { project = null, env = [], toolset = null, repo = null } = trace.place
  const { ctx, env: found, work, policy } = trace.blackboard ?? {}
  const parts = Object.entries({ ctx, env: found, work, policy }).filter(([, part]) => part !== undefined && isJsonFields(part))
  return {
    name: trace.trace_id,
    inputs: {},
    blackboard: Object.fromEntries(parts),
    text: trace.goal?.text ?? '',
    goal_labels: trace.goal?.labels ?? [],
    place: { project, env: [env].flat(), toolset, repo },
    calls: [],
  }
}

export const recordedCall = ({ name, input, output, cost_usd, duration_ms }: TracedAct): RecordedCall => ({
  tool: name,
  input,
  output: (output ?? null) as Json,
  cost_usd,
  duration_ms,
})
