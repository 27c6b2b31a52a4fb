import { z } from '@hono/zod-openapi'
import { eventStatuses } from '../protocol/event-record.ts'
import { problem } from './describe.ts'

const time = z.iso.datetime()
const traceId = z.string().meta({ description: '32 hex digits' })

export const event = z
  .looseObject({
    id: z.string(),
    type: z.string(),
    scope: z.string(),
    source: z.string(),
    timestamp: time,
    meta: z.object({ trace_id: traceId, correlation_id: z.string().nullable(), causation_id: z.string().nullable() }),
  })
  .openapi('Event', { description: "The type's own fields stand beside these." })

export const outcome = z
  .discriminatedUnion('by', [
    z.object({ by: z.literal('filter') }),
    z.object({ by: z.literal('perceive'), reason: z.string() }),
    z.object({ by: z.literal('turn'), turn_id: z.string(), log_seq: z.int(), result: z.unknown().optional() }),
    z.object({
      by: z.literal('reflex'),
      reflex_id: z.string(),
      version: z.int(),
      log_seq: z.int(),
      reused: z.literal(true).optional(),
      action: z.object({ action_type: z.string() }).optional(),
    }),
    z.object({ by: z.literal('pull') }),
    z.object({ by: z.literal('cancel'), reason: z.string() }),
    z.object({ by: z.literal('failure'), reason: z.string(), discarded: z.boolean().optional() }),
  ])
  .openapi('Outcome', { description: 'By what an event ended. The `result` of a turn is null where it decided to do nothing.' })

const status = z.enum(eventStatuses)
const attempts = z.int().meta({ description: 'How often it was tried.' })
const error = z.string().nullable()

const receipt = z.object({ id: z.string(), scope: z.string(), trace_id: traceId, status: z.enum(['accepted', 'queued', 'duplicate']) })

export const receipts = z
  .object({
    accepted: z.int().meta({ description: 'How many are new; the others are duplicates, which change nothing.' }),
    events: z.array(receipt),
  })
  .openapi('Receipts')

export const partlyQueued = problem
  .extend({ receipts: z.array(receipt.extend({ status: z.enum(['queued', 'duplicate', 'unknown']) })).optional() })
  .openapi('PartlyQueued', {
    description:
      'Where events were read: `receipts` has one for each, in their order. What is `unknown` may be lost, and is to be sent again under the id that stands there.',
  })

export const outcomes = z
  .object({
    accepted: z.int(),
    events: z.array(
      z.object({
        id: z.string(),
        scope: z.string(),
        trace_id: traceId,
        status,
        attempts,
        error,
        outcome: outcome.nullable(),
        shortened: z
          .literal(true)
          .optional()
          .meta({ description: 'The answer was full: this has no `result` and no `action`, and long texts are cut.' }),
      }),
    ),
  })
  .openapi('Outcomes')

export const loggedEvent = z
  .object({
    id: z.string(),
    scope: z.string(),
    type: z.string(),
    source: z.string(),
    timestamp: time,
    status: z.string().meta({ enum: [...eventStatuses] }),
    attempts,
    error,
    trace_id: traceId,
    event,
  })
  .openapi('LoggedEvent')

export const eventRecord = z
  .object({ event, status, attempts, error, outcome: outcome.nullable(), accepted_at: time, ended_at: time.nullable() })
  .openapi('EventRecord')
