import { dollars, duration } from '../../../base/amounts.ts'
import type { TraceStatus } from '../../../contract/reports/trace.ts'
import type { Colour, FilteredList, Flag } from '../../../contract/shown.ts'
import type { Activity } from './activity.ts'

const traceStatuses = ['running', 'ok', 'partial', 'error'] as const satisfies readonly TraceStatus[]
const deciders = ['filter', 'reflex', 'decision', 'turn', 'nobody', 'person'] as const satisfies readonly NonNullable<
  Activity['decided_by']
>['by'][]

export const traceColours: Readonly<Record<TraceStatus, Colour>> = { ok: 'green', partial: 'yellow', error: 'red', running: 'yellow' }

/** The options of both lists of traces. */
export const traceFlags = [
  ['--scope <scope>', 'of one scope'],
  ['--agent <agent>', 'of one agent'],
  ['--kind <kind>', 'with a span of a kind, such as turn, model, gate or effect'],
  ['--skill <id>', 'with a decision on a skill'],
  ['--status <status>', 'in one state', { choices: traceStatuses }],
  ['--min-duration <ms>', 'that took at least as long', { is: 'whole', field: 'min_duration_ms' }],
  ['--since <time>', 'at or after a time: 10m ago, or an ISO time', { is: 'instant' }],
  ['--until <time>', 'before a time: 10m ago, or an ISO time', { is: 'instant' }],
] as const satisfies readonly Flag[]

export const activities = {
  at: 'get /v1/activity',
  key: 'trace_id',
  flags: [
    ['--q <text>', 'with a text'],
    ['--decider <who>', 'decided by a kind of decider', { choices: deciders }],
    ['--min-cost <usd>', 'that cost at least as much', { field: 'min_cost_usd' }],
    ...traceFlags,
  ],
  columns: [
    { title: 'Started', of: ({ started_at }) => started_at, kind: 'time' },
    { title: 'What', of: ({ words }) => words, to: ({ trace_id }) => `/traces/${trace_id}` },
    { title: 'Decided by', of: ({ decided_by }) => decided_by?.name ?? decided_by?.by, width: 12 },
    { title: 'Cost', of: ({ cost_usd }) => dollars(cost_usd), width: 6 },
    { title: 'Status', of: ({ status }) => status, kind: 'status', colour: ({ status }) => traceColours[status] },
    { title: 'Scopes', of: ({ scopes }) => scopes.join(' '), only: 'terminal' },
    { title: 'Scope', of: ({ scopes }) => scopes[0], kind: 'scope', only: 'page', width: 11 },
    { title: 'Event', of: ({ first_event }) => first_event?.type ?? 'a call', width: 9 },
    { title: 'Took', of: ({ duration_ms }) => (duration_ms === null ? null : duration(duration_ms)), width: 6 },
    { title: 'Trace', of: ({ trace_id }) => trace_id, only: 'terminal' },
  ],
} as const satisfies FilteredList<Activity>
