import { z } from '@hono/zod-openapi'
import type { AnyOperation } from '../../../../../contract/operation.ts'
import * as approvals from '../../../../approvals/operations/approvals.ts'
import * as dead_letters from '../../../../../contract/operations/dead-letters.ts'
import * as scopes from '../../../../../contract/operations/scopes.ts'
import { toolPage as some, toolScope as scope } from '../../../../../contract/operations/shared.ts'
import { families } from '../../../../statistics/contract/statistics.ts'
import { replayChanges } from '../../../../replay/contract/what-if.ts'

/** Requests that only read, and that the server of inspections offers as tools. */
export type Inspection = Pick<AnyOperation, 'at' | 'roles' | 'query' | 'mcp'>

const trace_id = z.string().regex(/^[0-9a-f]{32}$/, 'a trace id is 32 lower-case hex digits')
const time = z.iso.datetime({ offset: true }).optional()

export const inspections: readonly Inspection[] = [
  scopes.list,
  scopes.state,
  scopes.context,
  {
    at: 'get /v1/scopes/{scope}/log',
    roles: ['viewer'],
    mcp: {
      name: 'read_log',
      title: 'Log of a scope',
      description: 'Everything that a scope perceived, decided and did, oldest first. `show_scope` has the last `seq`.',
      input: {
        scope,
        after: z.int().min(0).optional().describe('Entries with a greater `seq`.'),
        kind: z.string().max(1000).optional().describe('Kinds, separated by commas: `reflex-fired`, `skill-decided`, `turn-ended`, …'),
        limit: some.limit,
      },
    },
  },
  {
    at: 'get /v1/scopes/{scope}/events/{id}',
    roles: ['viewer'],
    mcp: {
      name: 'explain_event',
      title: 'Why an event ended as it did',
      description: 'The event, its status, what decided it, or what it waits for. `explain_trace` has the steps, by its `trace_id`.',
      input: { scope, id: z.string().min(1).max(128) },
    },
  },
  {
    at: 'get /v1/traces',
    roles: ['viewer'],
    mcp: {
      name: 'list_traces',
      title: 'Traces',
      description: 'Traces, newest first, with their status, cost and duration.',
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
  },
  {
    at: 'get /v1/traces/{trace_id}',
    roles: ['viewer'],
    mcp: {
      name: 'explain_trace',
      title: 'Why an agent acted',
      description: 'A trace as a tree: each decision and effect with inputs, outputs, scores, reasons, `to_pass` and cost.',
      input: { trace_id, scope: scope.optional().describe('Needed for a trace that has just begun.') },
    },
  },
  {
    at: 'get /v1/scopes/{scope}/metrics',
    roles: ['viewer'],
    mcp: {
      name: 'what_acts',
      title: 'What acts in a scope',
      description: 'The reflexes of a scope with their fire rate, agreement in shadow mode and certificate.',
      input: { scope },
    },
  },
  {
    at: 'get /v1/reflexes',
    roles: ['viewer'],
    mcp: {
      name: 'list_reflexes',
      title: 'Reflexes',
      description: 'The newest version of each reflex.',
      input: { q: z.string().max(200).optional(), state: z.string().max(64).optional(), ...some },
    },
  },
  {
    at: 'get /v1/skills',
    roles: ['viewer'],
    mcp: {
      name: 'list_skills',
      title: 'Skills',
      description: 'The newest version of each skill.',
      input: { q: z.string().max(200).optional(), state: z.string().max(64).optional(), ...some },
    },
  },
  {
    at: 'get /v1/stats',
    roles: ['viewer'],
    mcp: {
      name: 'statistics',
      title: 'A metric over time',
      description: 'A number per minute, hour or day. An unknown metric is answered with the names of all.',
      input: {
        metric: z.string().max(64),
        by: z.enum(families).optional(),
        bucket: z.enum(['minute', 'hour', 'day', 'all']).optional(),
        scope: scope.optional().describe('A scope or a pattern.'),
        since: time,
        until: time,
      },
    },
  },
  {
    at: 'post /v1/traces/{trace_id}/replay',
    roles: ['viewer'],
    query: z.object({ scope }),
    mcp: {
      name: 'replay_trace',
      title: 'What if',
      description:
        'Decides again about a trace, without effects. `pinned` compares with this deployment; `what_if` makes the named changes first, such as other settings or reflex code.',
      input: { trace_id, scope, mode: z.enum(['pinned', 'what_if']).default('pinned'), changes: replayChanges.optional() },
    },
  },
  {
    at: 'get /health/detailed',
    roles: ['viewer'],
    mcp: {
      name: 'health',
      title: 'Health of the deployment',
      description: 'The parts of the deployment, and what is wrong with them.',
      input: {},
    },
  },
  {
    at: 'get /v1/waiting',
    roles: ['viewer'],
    mcp: {
      name: 'what_waits',
      title: 'What waits for a person',
      description: 'Pending approvals and dead letters, newest first: ids, kinds, times and errors, without inputs and content.',
      input: { scope: scope.optional(), limit: some.limit },
    },
  },
  approvals.list,
  dead_letters.list,
]
