import { limits } from '../../../base/limits.ts'
import type { LogEntry } from '../../../contract/log-entry.ts'
import { coversScope } from '../../../contract/principal.ts'
import type { ScopeApi } from '../../../contract/scope-api.ts'
import { find, list } from '../operations/traces.ts'
import type { Env } from '../../../env.ts'
import { demandWhole } from '../../../store/packs/missing.ts'
import { storeOf } from '../../../store/store.ts'
import { callsOfTraces, eventsOfTraces, listTraces, type TraceCall, type TraceEvent } from '../../../store/traces/traces.ts'
import type { LoggedEntry } from '../../../traces/spans/node.ts'
import { buildTrace } from '../../../traces/spans/tree.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { demandCoverage } from '../../../http/auth/middleware.ts'
import { notFound, unavailable } from '../../../http/problems/refusals.ts'
import { MOST_SCOPES } from './trace-scope.ts'

export const traceRoutes = resource().openapiRoutes([
  serve(list, (c, { query }) => listTraces(storeOf(c.env), { ...query, patterns: c.var.principal.scopes })),
  serve(find, async (c, { params: { trace_id }, query: { scope } }) => {
    const { principal } = c.var
    if (scope !== undefined) demandCoverage(principal, [{ scope }])
    const missing = new Set<string>()
    const [events, calls] = await Promise.all([
      eventsOfTraces(storeOf(c.env), [trace_id], principal.scopes, { missing }),
      callsOfTraces(storeOf(c.env), [trace_id], principal.scopes),
    ])
    const ranges = rangesOf(
      events.filter((event) => coversScope(principal, event.scope)),
      calls,
    )
    if (scope !== undefined && !ranges.has(scope)) ranges.set(scope, null)
    const parts = await Promise.all(
      Array.from(ranges)
        .slice(0, MOST_SCOPES)
        .map(([name, range]) => entriesOf(c.env, { trace_id, scope: name, range, events })),
    )
    const truncated = missing.size > 0 || ranges.size > MOST_SCOPES || parts.some((part) => part.truncated)
    const built = buildTrace(
      trace_id,
      parts.flatMap(({ logged }) => logged),
      { truncated },
    )
    if (!built) demandWhole({ missing })
    const unread = built ? undefined : parts.find((part) => part.unread !== null)?.unread
    if (unread) throw unavailable(`Part of the log is in the archive: ${unread}.`)
    if (!built) throw notFound(whyAbsent(trace_id, events.length + calls.length > 0))
    return built
  }),
])

/** A list keeps the summary of a trace for longer than its scope keeps the log. */
const whyAbsent = (trace_id: string, is_listed: boolean): string =>
  is_listed
    ? `The log no longer has trace ${trace_id}, which lists still name: the scope's setting retention_days says for how long.`
    : `There is no trace ${trace_id} in the scopes of this key. Name its scope if it has just begun.`

const MOST_ENTRIES = 5000
/** Files of the archive that cannot be read. */
const MOST_UNREAD = 16
/** Entries of a scope's log that are searched for a trace without an event. */
const NEWEST = 20_000
/** Entries may follow the end of an event. */
const SETTLED_MS = 60_000

/** The place of the trace in a scope's log; null means its newest entries. */
type Range = { after: number; before?: number }

function rangesOf(events: readonly TraceEvent[], calls: readonly TraceCall[]): Map<string, Range | null> {
  const ranges = new Map<string, Range | null>()
  for (const [scope, some] of Map.groupBy([...events, ...calls], (one) => one.scope)) {
    const after = Math.min(...some.map(({ log_from }) => log_from ?? 1)) - 1
    const is_settled = some.every(({ ended_at }) => ended_at !== null && ended_at < Date.now() - SETTLED_MS)
    ranges.set(scope, is_settled ? { after, before: Math.max(...some.map(({ revision }) => revision)) + 1 } : { after })
  }
  return ranges
}

async function entriesOf(
  env: Env,
  { trace_id, scope, range, events }: { trace_id: string; scope: string; range: Range | null; events: readonly TraceEvent[] },
): Promise<{ logged: LoggedEntry[]; truncated: boolean; unread: string | null }> {
  const stub: Pick<ScopeApi, 'readLog'> = env.SCOPE.getByName(scope)
  const { after, before } = range ?? { after: Math.max(0, (await stub.readLog(0, 0)).last_seq - NEWEST) }
  const related = events.filter((event) => event.scope === scope).map(({ id }) => id)
  const logged: LoggedEntry[] = []
  let next: number | null = after
  const unread: string[] = []
  const ended = (truncated: boolean) => ({ logged, truncated: truncated || unread.length > 0, unread: unread[0] ?? null })
  while (next !== null && logged.length < MOST_ENTRIES && unread.length < MOST_UNREAD) {
    const page = await stub.readLog(next, limits.log_page, before, { trace_id, related, contexts: false })
    logged.push(...page.entries.map((text) => ({ scope, entry: JSON.parse(text) as LogEntry })))
    // Entries in a file that cannot be read are missing in the tree; the scope may have later ones.
    if (page.unavailable !== undefined) unread.push(page.unavailable)
    if (page.next === next) return ended(true)
    next = page.next
  }
  return ended(next !== null)
}
