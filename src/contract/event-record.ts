import { z } from 'zod'
import type { Event } from '../core/event.ts'
import { action } from './action.ts'
import { answers } from './decision-answers.ts'
import { problem } from './problem.ts'

const time = z.iso.datetime()
const traceId = z.string().describe('32 hex digits.')

export const event = z
  .looseObject({
    id: z.string(),
    type: z.string(),
    scope: z.string(),
    source: z.string(),
    timestamp: time,
    meta: z.object({
      trace_id: traceId,
      correlation_id: z.string().nullable(),
      causation_id: z.string().nullable(),
      parent_id: z.string().optional().describe('The span that caused it, 16 hex digits.'),
      trace_flags: z.string().optional().describe("The caller's flags, 2 hex digits: `01` if it records the trace."),
      tracestate: z.string().optional().describe('As the caller sent it; it is passed on.'),
      sender: z
        .string()
        .optional()
        .describe(
          '`key:ID` of the key with which it, or the event that it derives from, was sent. Set by the server alone, or by a producer of queue messages.',
        ),
      role: z
        .enum(['admin', 'operator'])
        .optional()
        .describe(
          'The role of the key with which it was sent, at that time. Set by the server alone. Unset: neither, or the key of the deployment.',
        ),
      heard: z
        .literal(true)
        .optional()
        .describe(
          'Set by the server if somebody can hear what is replied: it was sent over a socket, by AG-UI or A2A, a caller waits for its outcome, the scope has a webhook for ended events, its sender has an open socket, or it is a message and the scope has an open socket.',
        ),
      sent_id: z
        .string()
        .optional()
        .describe('Of a CloudEvent: its `id` as it was sent. The id of the event is made from it and the source.'),
    }),
  })
  .meta({ id: 'Event', description: 'The fields of its type follow the common ones.' }) satisfies z.ZodType<Event>

/** An event as it is sent: only its type and the required fields of that type are mandatory. */
export type EventInput = {
  type: string
  id?: string
  scope?: string
  source?: string
  timestamp?: string
  meta?: Partial<Meta>
  [field: string]: unknown
}
type Meta = { trace_id: string; correlation_id: string | null; causation_id: string | null; parent_id?: string }

/** The caller's flags and state of the trace, as in W3C trace context. */
export type TraceMarks = { trace_flags?: string | undefined; tracestate?: string | undefined }

const outcomeStatuses = ['completed', 'ignored', 'dead_lettered', 'cancelled'] as const
export type OutcomeStatus = (typeof outcomeStatuses)[number]
export const eventStatuses = ['queued', 'pending', 'processing', ...outcomeStatuses] as const
export type EventStatus = (typeof eventStatuses)[number]

const waitingReasons = ['model', 'budget', 'retry', 'turn', 'debounce', 'reflex', 'pull', 'start', 'pause'] as const

const waiting = z
  .object({
    reason: z
      .enum(waitingReasons)
      .describe(
        '`model`: the model provider is busy or unreachable. `budget`: the token budget is spent. `retry`: an attempt failed or was interrupted. ' +
          '`turn`: a turn is in flight. `debounce`: the quiet period before a turn. `reflex`: an action of a reflex, or a call of the decision model, is still running. ' +
          '`pull`: an external consumer has to claim or acknowledge it. `start`: a turn is about to start. `pause`: the setting `paused` is true.',
      ),
    since: time.nullable(),
    until: time.nullable().describe('When processing resumes; null if no time is set.'),
    detail: z.string(),
  })
  .meta({ id: 'Waiting', description: 'Why an event has no outcome yet.' })
export type Waiting = z.infer<typeof waiting>

const failedCall = z
  .object({ tool: z.string(), error: z.string(), attempts: z.int().describe('Number of times the turn made this call.') })
  .describe('A tool call that failed and did not succeed later in the turn.')
export type FailedCall = z.infer<typeof failedCall>

const failedRun = z
  .object({
    run_id: z.string(),
    skill_id: z.string(),
    status: z.enum(['failed', 'partial_failure', 'unknown']),
    error: z.string(),
  })
  .describe('A run of a skill that the turn proposed and that did not succeed.')
export type FailedRun = z.infer<typeof failedRun>

const outcome = z
  .discriminatedUnion('by', [
    z.object({ by: z.literal('filter') }),
    z
      .object({ by: z.literal('perceive'), reason: z.string() })
      .describe('It joined the context without a turn: the agent starts none, or the overlap policy is `drop`.'),
    z.object({
      by: z.literal('turn'),
      turn_id: z.string(),
      log_seq: z.int(),
      result: z.unknown().optional(),
      failed_calls: z.array(failedCall).optional(),
      failed_runs: z.array(failedRun).optional(),
      idle: z
        .literal(true)
        .optional()
        .describe('Nothing was considered, such as where `when` does not hold: no model was asked and nothing done.'),
      why: z.string().optional().describe('Why nothing was considered, where the agent says it.'),
      partial: z
        .literal(true)
        .optional()
        .describe(
          'A tool call of the turn failed and did not succeed later, or a run of a skill failed: `failed_calls` and `failed_runs` name them.',
        ),
    }),
    z.object({
      by: z.literal('reflex'),
      reflex_id: z.string(),
      version: z.int(),
      log_seq: z.int(),
      reused: z.literal(true).optional().describe('An action with the same idempotency key was carried out before.'),
      action: action.optional(),
    }),
    z
      .object({
        by: z.literal('decision'),
        log_seq: z.int(),
        model: z.string().optional(),
        answers: answers.optional(),
        action: action.optional(),
        usage: z.object({ input_tokens: z.int(), output_tokens: z.int() }).optional(),
      })
      .describe('The decision model answered.'),
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
  .meta({ id: 'Outcome', description: 'What ended the event. The `result` of a turn is null if the turn decided to do nothing.' })
export type Outcome = z.infer<typeof outcome>

const status = z.enum(eventStatuses)
const attempts = z.int().describe('Number of attempts so far.')
const error = z.string().nullable()

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
  .meta({ id: 'EventRecord' })
export type EventRecord = z.infer<typeof eventRecord> & { event: Event }

const eventOutcome = z.object({
  id: z.string(),
  scope: z.string(),
  trace_id: traceId,
  status,
  attempts,
  error,
  outcome: outcome.nullable(),
  shortened: z.literal(true).optional().describe('The response was full: `result` and `action` are omitted, and long texts are truncated.'),
})
export type EventOutcome = Omit<z.infer<typeof eventOutcome>, 'scope'> & { waiting: Waiting | null }

export const outcomes = z.object({ accepted: z.int(), events: z.array(eventOutcome) }).meta({ id: 'Outcomes' })

const receipt = z.object({
  id: z.string(),
  sent_id: z.string().optional().describe('Of a CloudEvent: its `id` as it was sent.'),
  scope: z.string(),
  trace_id: traceId,
  status: z.enum(['accepted', 'queued', 'duplicate']),
})
export type EventReceipt = z.infer<typeof receipt>

export const receipts = z
  .object({
    accepted: z.int().describe('Number of new events. The others are duplicates, which change nothing.'),
    events: z.array(
      receipt.extend({ waiting: waiting.nullable().optional().describe('Only with `wait=outcome`, if the time is up first.') }),
    ),
  })
  .meta({ id: 'Receipts' })

export const partlyQueued = problem
  .extend({
    receipts: z
      .array(receipt.extend({ status: z.enum(['queued', 'duplicate', 'unknown']) }))
      .optional()
      .describe('One per event, in request order. `unknown`: it may be lost; send it again under the id given here.'),
  })
  .meta({ id: 'PartlyQueued', description: 'The queue did not accept all events, or failed.' })

/** An event in the log of all scopes, which D1 keeps. */
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
    partial: z
      .boolean()
      .describe('It ended well although a tool call or a skill run of its turn failed: `failed_calls` and `failed_runs` of its outcome.'),
    event,
  })
  .meta({ id: 'LoggedEvent' })

export const deadLetter = z
  .object({
    id: z.string(),
    origin: z
      .enum(['scope', 'queue', 'market'])
      .describe('`scope`: it gave up on the event. `queue`: delivery to the scope failed. `market`: a deal could not be delivered.'),
    scope: z.string().nullable(),
    event_id: z.string().nullable(),
    type: z.string().nullable(),
    error: z.string(),
    stack: z.string().nullable().describe('Stack trace of the error, if it has one.'),
    attempts: z.int(),
    event: event.optional(),
    payload: z.string().optional().describe('Replaces `event` for a message that could not be parsed.'),
    dead_lettered_at: time,
  })
  .meta({ id: 'DeadLetter' })

/**
 * `interrupts`: how many turns in a row were interrupted before it. `full`: it can consider no more
 * events (`turn_limit`), so others wait for the next one.
 */
export type InFlight = { turn_id: string; interrupts: number; full?: true }
/**
 * The fate of an event that waits for a turn. `dropped`: it joins the context without one. `waits`:
 * for the turn in flight. `debounced`: for a quiet time. `starts`: a turn starts, or soon will.
 */
export type Arrival = 'no_trigger' | 'dropped' | 'interrupts' | 'waits' | 'debounced' | 'starts'
/** The turn that was in flight, and what the overlap policy did with the event. */
export type Meeting = { overlap?: InFlight & { arrival: Arrival } }

/** Dead letters that share an error. */
export const deadLetterGroup = z
  .object({
    id: z.string().describe('The error and the type.'),
    error: z.string().describe('The first line of the error, with `#` for each number.'),
    type: z.string().nullable(),
    letters: z.int(),
    scopes: z.int(),
    first: z.iso.datetime().describe('The oldest of these letters.'),
    last: z.iso.datetime(),
  })
  .meta({ id: 'DeadLetterGroup' })
