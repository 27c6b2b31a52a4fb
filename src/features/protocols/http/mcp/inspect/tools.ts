import type { AnyOperation } from '../../../../../contract/operation.ts'
import * as dead_letters from '../../../../../contract/operations/dead-letters.ts'
import { findInScope } from '../../../../../contract/operations/events.ts'
import * as health from '../../../../../contract/operations/health.ts'
import * as reflexes from '../../../../../contract/operations/reflexes.ts'
import * as scopes from '../../../../../contract/operations/scopes.ts'
import * as skills from '../../../../../contract/operations/skills.ts'

const platform: readonly AnyOperation[] = [
  scopes.list,
  scopes.state,
  scopes.context,
  scopes.log,
  findInScope,
  reflexes.list,
  skills.list,
  health.detailed,
  dead_letters.list,
]

/** The order in which models have always seen the tools. Others follow. */
const ORDER =
  'list_scopes show_scope show_context read_log explain_event list_traces explain_trace what_acts list_reflexes list_skills ' +
  'statistics replay_trace health what_waits approvals_waiting dead_letters'
const places = new Map(ORDER.split(' ').map((name, place) => [name, place]))
const placeOf = ({ mcp }: AnyOperation): number => places.get(mcp?.name ?? '') ?? places.size

/** Requests that only read, and that the server of inspections offers as tools. */
export const inspectionsOf = (declared: readonly AnyOperation[]): readonly AnyOperation[] =>
  [...platform, ...declared].filter(({ mcp }) => mcp).toSorted((one, other) => placeOf(one) - placeOf(other))
