import type { AnyOperation, Resource } from '../../../../../contract/operation.ts'
import * as dead_letters from '../../../../../contract/operations/dead-letters.ts'
import { findInScope } from '../../../../../contract/operations/events.ts'
import * as health from '../../../../../contract/operations/health.ts'
import * as reflexes from '../../../../../contract/operations/reflexes.ts'
import * as scopes from '../../../../../contract/operations/scopes.ts'
import * as skills from '../../../../../contract/operations/skills.ts'
import * as approvals from '../../../../approvals/operations/approvals.ts'
import { metricsInScope } from '../../../../proof/operations/metrics.ts'
import { replay } from '../../../../replay/operations/replay.ts'
import * as statistics from '../../../../statistics/http/statistics.ts'
import * as traces from '../../../../traces/operations/traces.ts'

/** The order in which models have always seen them. */
const inspections: readonly AnyOperation[] = [
  scopes.list,
  scopes.state,
  scopes.context,
  scopes.log,
  findInScope,
  traces.list,
  traces.find,
  metricsInScope,
  reflexes.list,
  skills.list,
  statistics.read,
  replay,
  health.detailed,
  approvals.listWaiting,
  approvals.list,
  dead_letters.list,
]

/** Requests that only read, and that the server of inspections offers as tools. */
export function inspectionsOf(declared: readonly Resource[]): readonly AnyOperation[] {
  const further = declared.flatMap(({ verbs }) => verbs).filter((op) => op.mcp && !inspections.includes(op))
  return [...inspections, ...further]
}
