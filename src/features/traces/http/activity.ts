import type { LogEntry } from '../../../contract/log-entry.ts'
import { coversScope, type Principal } from '../../../contract/principal.ts'
import type { LogRead, ScopeApi } from '../../../contract/scope-api.ts'
import type { Env } from '../../../env.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { storeOf } from '../../../store/store.ts'
import { findTraces, type FoundTrace } from '../../../store/traces/traces.ts'
import type { Activity } from '../contract/activity.ts'
import { listActivity } from '../operations/activity.ts'
import { inWords, spoken } from './words.ts'

/**
 * Pages of traces that a request looks through while it has found nothing. Once it has asked so
 * many scopes it looks no further: each may have to start.
 */
const MOST_PAGES = 10
const MANY_SCOPES = 100
/** Pages of a scope's log, each of at most as many entries. */
const MOST_READ = 3
const PAGE = 1000

type Sought = { q?: string | undefined; decider?: string | undefined; min_cost_usd?: number | undefined }

export const activityRoutes = resource().openapiRoutes([
  serve(listActivity, async (c, { query: { q, decider, min_cost_usd, cursor, ...filters } }) => {
    const { principal } = c.var
    let place = cursor
    let scopes = 0
    for (let page = 1; ; page += 1) {
      const query = { ...filters, cursor: place, patterns: principal.scopes }
      const { items, ...rest } = await findTraces(storeOf(c.env), query)
      const { activity, asked } = await described(c.env, principal, items)
      const found = activity.filter((one) => isSought(one, { q, decider, min_cost_usd }))
      scopes += asked
      const is_last = rest.next_cursor === null || page === MOST_PAGES || scopes >= MANY_SCOPES
      if (found.length > 0 || rest.missing || rest.damaged || is_last) return { items: found, ...rest }
      place = rest.next_cursor ?? undefined
    }
  }),
])

function isSought({ words, decided_by, cost_usd, scopes, first_event }: Activity, { q, decider, min_cost_usd }: Sought): boolean {
  const texts = [words, decided_by?.name ?? decided_by?.by, ...scopes, first_event?.type, first_event?.id]
  const sought = q?.toLowerCase()
  return (
    (sought === undefined || texts.some((text) => text?.toLowerCase().includes(sought) === true)) &&
    (decider === undefined || decided_by?.by === decider) &&
    (min_cost_usd === undefined || cost_usd === null || cost_usd >= min_cost_usd)
  )
}

type Described = { activity: Activity[]; asked: number }

/** Traces in words: each scope is asked once for the part of its log that they are in. */
async function described(env: Env, principal: Principal, traces: readonly FoundTrace[]): Promise<Described> {
  const parts = traces
    .flatMap(({ events, calls }) => [...events, ...calls])
    .filter(({ scope, log_from }) => log_from !== null && coversScope(principal, scope))
  const read = await Promise.all(
    Array.from(
      Map.groupBy(parts, ({ scope }) => scope),
      ([scope, of]) =>
        entriesOf(env, scope, {
          after: Math.min(...of.map(({ log_from }) => log_from ?? 1)) - 1,
          before: Math.max(...of.map(({ revision }) => revision)) + 1,
        }),
    ),
  )
  const entries = Map.groupBy(read.flat(), ({ trace_id }) => trace_id)
  const activity = traces.map(({ summary }) => {
    const { trace_id, first_event } = summary
    return { ...summary, ...inWords(entries.get(trace_id) ?? [], first_event ? `${first_event.type} ${first_event.id}` : 'a call') }
  })
  return { activity, asked: read.length }
}

/** A scope that cannot be read has no words; its traces are listed all the same. */
async function entriesOf(env: Env, scope: string, { after, before }: { after: number; before: number }): Promise<LogEntry[]> {
  const stub: Pick<ScopeApi, 'readLog'> = env.SCOPE.getByName(scope)
  const entries: LogEntry[] = []
  let next: number | null = after
  for (let page = 0; next !== null && page < MOST_READ; page += 1) {
    const read: LogRead | null = await stub.readLog(next, PAGE, before, { kinds: spoken, contexts: false }).catch(() => null)
    if (read === null) break
    entries.push(...read.entries.map((text) => JSON.parse(text) as LogEntry))
    next = read.next === next ? null : read.next
  }
  return entries
}
