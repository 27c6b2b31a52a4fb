import { z } from 'zod'
import { duration } from '../../../base/amounts.ts'
import { operations } from '../../../contract/operation.ts'
import { instant, toolPage, toolScope, toolTime, traceId } from '../../../contract/operations/shared.ts'
import { pagedOfPacks, pageLimit } from '../../../contract/paging.ts'
import { spanKinds, trace, traceStatuses, traceSummary } from '../../../contract/reports/trace.ts'
import { scopeName } from '../../../core/event.ts'
import { traceColours, traceFlags } from '../contract/lists.ts'

export const operation = operations({ tag: 'Traces', roles: ['viewer'] })

/** The filters of both lists of traces. */
export const traceFilters = {
  scope: scopeName.optional(),
  agent: z.string().max(128).optional().describe('The agent that serves the scope.'),
  kind: z.enum(spanKinds).optional().describe('A kind of span that the trace has.'),
  status: z.enum(traceStatuses).optional(),
  skill: z.string().max(128).optional().describe('The id of a skill that the gate decided on.'),
  since: instant.optional().describe('Events accepted at or after this time.'),
  until: instant.optional().describe('Events accepted before this time.'),
  min_duration_ms: z.coerce.number<string>().min(0).optional().describe('From the acceptance of the event to its end.'),
  limit: pageLimit(100),
  cursor: z
    .string()
    .regex(/^\d{1,19}$/, 'pass the next_cursor of the previous page')
    .optional(),
}

export const list = operation('get /v1/traces', 'listTraces', 'List traces, newest first', {
  description:
    'Each trace once, by its newest event that matches. A filter is about one event and what followed from it. Traces without an event, such as those of ' +
    'proposals and of changed settings, are listed by their start. A page may be short, or empty, and still have a `next_cursor`.',
  query: z.object(traceFilters),
  answers: { 200: [pagedOfPacks(traceSummary), 'A page.'] },
  command: {
    usage: 'list',
    help: 'List traces, newest first',
    flags: traceFlags,
    table: {
      columns: [
        { title: 'Started', of: ({ started_at }) => started_at },
        { title: 'Status', of: ({ status }) => status, colour: ({ status }) => traceColours[status] },
        { title: 'Took', of: ({ duration_ms }) => (duration_ms === null ? null : duration(duration_ms)) },
        { title: 'Trace', of: ({ trace_id }) => trace_id },
        { title: 'Scopes', of: ({ scopes }) => scopes.join(' ') },
        { title: 'Event', of: ({ first_event }) => first_event?.type ?? '-' },
        { title: 'Kinds', of: ({ kinds, skills }) => [...kinds, ...skills].join(' ') },
      ],
      empty: 'No trace matches. A trace is listed a second or two after its event.',
      most: 100,
      limit: 20,
    },
  },
  mcp: {
    name: 'list_traces',
    title: 'Traces',
    description: 'Traces, newest first, with their status, cost and duration.',
    input: {
      scope: toolScope.optional(),
      status: z.string().max(64).optional(),
      kind: z.string().max(64).optional().describe('A kind of span that the trace has.'),
      skill: z.string().max(128).optional(),
      since: toolTime,
      until: toolTime,
      ...toolPage,
    },
  },
})

export const find = operation('get /v1/traces/{trace_id}', 'getTrace', 'Get a trace as one tree', {
  description:
    'Built from the logs of the scopes that the trace went through, as far as the key covers them. Its events are found in the list of events, with a delay of about ' +
    'a second; `scope` names a scope whose newest entries are searched as well.',
  params: z.object({
    trace_id: traceId.describe('As in the receipt of an event, or in the `traceparent` that it was sent with.'),
  }),
  query: z.object({ scope: scopeName.optional() }),
  answers: { 200: [trace, 'The trace.'] },
  problems: [404],
  mcp: {
    name: 'explain_trace',
    title: 'Why an agent acted',
    description: 'A trace as a tree: each decision and effect with inputs, outputs, scores, reasons, `to_pass` and cost.',
    input: { trace_id: traceId, scope: toolScope.optional().describe('Needed for a trace that has just begun.') },
  },
})
