import { z } from '@hono/zod-openapi'
import { eventStatuses } from '../../contract/event-record.ts'
import { waitingReasons } from '../../contract/waiting.ts'
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

const failedCall = z
  .object({ tool: z.string(), error: z.string(), attempts: z.int().meta({ description: 'How often the turn made the same call.' }) })
  .meta({ description: 'A call of a tool that failed and did not succeed later in the turn.' })

/** What an event without an outcome waits for. */
const waiting = z
  .object({
    reason: z.enum(waitingReasons).meta({
      description:
        '`model`: its provider is busy or out of reach. `budget`: the token budget is spent. `retry`: a try failed, or was interrupted. ' +
        '`turn`: a turn is in flight. `debounce`: the quiet time before a turn. `reflex`: an action of a reflex has not ended. ' +
        '`pull`: an outside consumer has to claim or acknowledge it. `start`: a turn is about to start.',
    }),
    since: time.nullable(),
    until: time.nullable().meta({ description: 'When it goes on; null where no time is set.' }),
    detail: z.string(),
  })
  .openapi('Waiting', { description: 'What an event without an outcome waits for.' })

export const outcome = z
  .discriminatedUnion('by', [
    z.object({ by: z.literal('filter') }),
    z.object({ by: z.literal('perceive'), reason: z.string() }),
    z.object({
      by: z.literal('turn'),
      turn_id: z.string(),
      log_seq: z.int(),
      result: z.unknown().optional(),
      failed_calls: z.array(failedCall).optional(),
    }),
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
    z.object({
      by: z.literal('failure'),
      reason: z.string(),
      log_seq: z.int().optional(),
      stack: z.string().optional(),
      discarded: z.boolean().optional(),
    }),
  ])
  .openapi('Outcome', { description: 'By what an event ended. The `result` of a turn is null where it decided to do nothing.' })

const status = z.enum(eventStatuses)
const attempts = z.int().meta({ description: 'How often it was tried.' })
const error = z.string().nullable()

const receipt = z.object({ id: z.string(), scope: z.string(), trace_id: traceId, status: z.enum(['accepted', 'queued', 'duplicate']) })
/** `waiting` stands in the answer to `wait=outcome` when the time is up first. */
const waitedReceipt = receipt.extend({ waiting: waiting.nullable().optional() })

export const receipts = z
  .object({
    accepted: z.int().meta({ description: 'How many are new; the others are duplicates, which change nothing.' }),
    events: z.array(waitedReceipt),
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
  .object({
    event,
    status,
    attempts,
    error,
    outcome: outcome.nullable(),
    waiting: waiting.nullable(),
    accepted_at: time,
    ended_at: time.nullable(),
  })
  .openapi('EventRecord')
