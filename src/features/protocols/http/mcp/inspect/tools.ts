import { z } from '@hono/zod-openapi'
import type { BaseRole } from '../../../../../contract/principal.ts'
import { families } from '../../../../statistics/contract/statistics.ts'
import { replayChanges } from '../../../../replay/contract/what-if.ts'

/** A question as a tool: a route that reads, with its fields in the path, the query or the body. */
export type Inspection = {
  name: string
  title: string
  description: string
  /** The role of the route. A key without it does not see the tool. */
  role: BaseRole
  at: `${'GET' | 'POST'} /${string}`
  input: Record<string, z.ZodType>
}

const scope = z.string().min(1).max(128).describe('The name of a scope, such as team-a/web.')
const some = {
  limit: z.int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional().describe('The next_cursor of the page before.'),
}
const trace_id = z.string().regex(/^[0-9a-f]{32}$/, 'a trace id is 32 lower-case hex digits')
const time = z.iso.datetime({ offset: true }).optional()

/** The routes check the fields again. */
export const inspections: readonly Inspection[] = [
  {
    name: 'list_scopes',
    title: 'Scopes',
    description: 'Scopes with their agent and their number of open events.',
    role: 'viewer',
    at: 'GET /v1/scopes',
    input: { search: z.string().max(200).optional(), ...some },
  },
  {
    name: 'show_scope',
    title: 'State of a scope',
    description: 'Inbox depth, turn in flight, counters, cost, parked work and settings.',
    role: 'viewer',
    at: 'GET /v1/scopes/{scope}',
    input: { scope },
  },
  {
    name: 'show_context',
    title: 'What an agent sees',
    description: 'The DecisionContext of a scope: now, or with `at` as it was after that entry of the log.',
    role: 'viewer',
    at: 'GET /v1/scopes/{scope}/context',
    input: { scope, at: z.int().min(0).optional(), limit: some.limit },
  },
  {
    name: 'read_log',
    title: 'Log of a scope',
    description: 'Everything that a scope perceived, decided and did, oldest first. `show_scope` has the last `seq`.',
    role: 'viewer',
    at: 'GET /v1/scopes/{scope}/log',
    input: {
      scope,
      after: z.int().min(0).optional().describe('Entries with a greater `seq`.'),
      kind: z.string().max(1000).optional().describe('Kinds, separated by commas: `reflex-fired`, `skill-decided`, `turn-ended`, …'),
      limit: some.limit,
    },
  },
  {
    name: 'explain_event',
    title: 'Why an event ended as it did',
    description: 'The event, its status, what decided it, or what it waits for. `explain_trace` has the steps, by its `trace_id`.',
    role: 'viewer',
    at: 'GET /v1/scopes/{scope}/events/{id}',
    input: { scope, id: z.string().min(1).max(128) },
  },
  {
    name: 'list_traces',
    title: 'Traces',
    description: 'Traces, newest first, with their status, cost and duration.',
    role: 'viewer',
    at: 'GET /v1/traces',
    input: {
      scope: scope.optional(),
      status: z.string().max(64).optional(),
      kind: z.string().max(64).optional().describe('A kind of span that the trace has.'),
      skill: z.string().max(128).optional(),
      since: time,
      until: time,
      ...some,
    },
  },
  {
    name: 'explain_trace',
    title: 'Why an agent acted',
    description: 'A trace as a tree: each decision and effect with inputs, outputs, scores, reasons, `to_pass` and cost.',
    role: 'viewer',
    at: 'GET /v1/traces/{trace_id}',
    input: { trace_id, scope: scope.optional().describe('Needed for a trace that has just begun.') },
  },
  {
    name: 'what_acts',
    title: 'What acts in a scope',
    description: 'The reflexes of a scope with their fire rate, agreement in shadow mode and certificate.',
    role: 'viewer',
    at: 'GET /v1/scopes/{scope}/metrics',
    input: { scope },
  },
  {
    name: 'list_reflexes',
    title: 'Reflexes',
    description: 'The newest version of each reflex.',
    role: 'viewer',
    at: 'GET /v1/reflexes',
    input: { q: z.string().max(200).optional(), state: z.string().max(64).optional(), ...some },
  },
  {
    name: 'list_skills',
    title: 'Skills',
    description: 'The newest version of each skill.',
    role: 'viewer',
    at: 'GET /v1/skills',
    input: { q: z.string().max(200).optional(), state: z.string().max(64).optional(), ...some },
  },
  {
    name: 'statistics',
    title: 'A metric over time',
    description: 'A number per minute, hour or day. An unknown metric is answered with the names of all.',
    role: 'viewer',
    at: 'GET /v1/stats',
    input: {
      metric: z.string().max(64),
      by: z.enum(families).optional(),
      bucket: z.enum(['minute', 'hour', 'day', 'all']).optional(),
      scope: scope.optional().describe('A scope or a pattern.'),
      since: time,
      until: time,
    },
  },
  {
    name: 'replay_trace',
    title: 'What if',
    description:
      'Decides again about a trace, without effects. `pinned` compares with this deployment; `what_if` makes the named changes first, such as other settings or reflex code.',
    role: 'viewer',
    at: 'POST /v1/traces/{trace_id}/replay?scope={scope}',
    input: { trace_id, scope, mode: z.enum(['pinned', 'what_if']).default('pinned'), changes: replayChanges.optional() },
  },
  {
    name: 'health',
    title: 'Health of the deployment',
    description: 'The parts of the deployment, and what is wrong with them.',
    role: 'viewer',
    at: 'GET /health/detailed',
    input: {},
  },
  {
    name: 'what_waits',
    title: 'What waits for a person',
    description: 'Pending approvals and dead letters, newest first: ids, kinds, times and errors, without inputs and content.',
    role: 'viewer',
    at: 'GET /v1/waiting',
    input: { scope: scope.optional(), limit: some.limit },
  },
  {
    name: 'approvals_waiting',
    title: 'Approvals that wait',
    description: 'Runs, promotions, activations and payments that wait for a person, with their inputs, newest first.',
    role: 'operator',
    at: 'GET /v1/approvals?status=pending',
    input: { scope: scope.optional(), ...some },
  },
  {
    name: 'dead_letters',
    title: 'Dead letters',
    description: 'Events that were given up, with their content and the error.',
    role: 'operator',
    at: 'GET /v1/dlq',
    input: { scope: scope.optional(), ...some },
  },
]
