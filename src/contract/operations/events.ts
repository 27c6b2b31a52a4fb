import { z } from 'zod'
import { limits } from '../../base/limits.ts'
import { scopeName } from '../../core/event.ts'
import { eventRecord, eventStatuses, loggedEvent, outcomes, partlyQueued, receipts, type EventInput } from '../event-record.ts'
import { NDJSON, operations, texts } from '../operation.ts'
import type { Colour, Flag } from '../shown.ts'
import { paged, pagedOfPacks, pageLimit } from '../paging.ts'
import { described } from '../plain-schema.ts'
import { feedback, judged } from '../feedback.ts'
import { idPath, instant, scopePath, toolScope } from './shared.ts'

const operation = operations({ tag: 'Events', roles: ['viewer'] })
const inScope = operations({ tag: 'Scopes', roles: ['viewer'], scoped: true })

const WAIT_MS = 10_000
const eventType = z.string().min(1).max(128).optional()
/** `true` or `false`, as texts: the words of a query are no booleans. */
const partial = z
  .enum(['true', 'false'])
  .transform((text) => text === 'true')
  .optional()
  .describe('Only events that ended well although a tool call or a skill run of their turn failed, or only the others.')

const shape = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const batch = (name: string) => ({ type: 'array', minItems: 1, maxItems: limits.events_per_request, items: shape(name) })
const example = { type: 'ws.message', connection_id: 'alice', content: 'hello' }
const cloudExample = {
  specversion: '1.0',
  id: 'a-1',
  source: '/chat',
  type: 'ws.message',
  subject: 'default',
  data: { connection_id: 'alice', content: 'hello' },
}

/** The body of a request that sends events: `readEvents` parses and validates it. */
const sent = {
  body: described<EventInput | EventInput[]>({ anyOf: [shape('EventInput'), batch('EventInput')] }),
  example,
  takes: 'own',
  forms: {
    description: `One event, or up to ${limits.events_per_request}; at most 1 MiB in total and 100 kB each. If one is invalid, none is accepted. With the header ce-specversion, the body is the data of one CloudEvent (binary mode).`,
    content: {
      [NDJSON]: {
        schema: { type: 'string', description: 'One event per line.' },
        example: `${JSON.stringify(example)}\n${JSON.stringify(example)}\n`,
      },
      'application/cloudevents+json': { schema: shape('CloudEvent'), example: cloudExample },
      'application/cloudevents-batch+json': { schema: batch('CloudEvent'), example: [cloudExample] },
    },
  },
} as const

export const publish = operation('post /v1/events', 'publishEvents', 'Send events to any scopes through the queue', {
  description:
    'Responds once the events are durable; their scopes receive them within milliseconds. Set your own ids to make retries idempotent: an event with a known id is a duplicate ' +
    'and changes nothing. If the queue accepts only some of the events (503), `receipts` lists which ones to send again, and under which ids. A `traceparent` header sets the trace of the events.',
  roles: ['publisher'],
  ...sent,
  answers: { 202: [receipts, 'Accepted.'] },
  refusals: { 503: [null, 'The queue did not accept all events, or is unavailable.', { 'application/problem+json': partlyQueued }] },
})

const colours: Partial<Record<string, Colour>> = { completed: 'green', ignored: 'dim', dead_lettered: 'red', cancelled: 'yellow' }
export const statusColour = (status: string): Colour | null => colours[status] ?? null

export const eventFlags: readonly Flag[] = [
  ['--scope <scope>', 'of one scope'],
  ['--type <type>', 'of one type'],
  ['--status <status>', 'in one state', { choices: eventStatuses }],
  ['--partial', 'that ended well although a tool failed'],
]

export const list = operation('get /v1/events', 'listEvents', 'List events, newest first', {
  description:
    'By the time at which they were accepted, whatever `timestamp` they have. The event log of all scopes that the key covers, about a second behind the scopes. With an archive, the list continues there with the days that have left D1. A page holds at most 4 MB of events, regardless of `limit`.',
  query: z.object({
    scope: scopeName.optional(),
    type: eventType,
    status: z.enum(eventStatuses).optional(),
    partial,
    since: instant.optional().describe('Events accepted at or after this time.'),
    until: instant.optional().describe('Events accepted before this time.'),
    limit: pageLimit(1000),
    cursor: z
      .string()
      .regex(/^\d{1,19}$/, 'take the next_cursor of the page before')
      .optional(),
  }),
  answers: {
    200: [
      pagedOfPacks(loggedEvent).extend({
        archived: z
          .array(z.string())
          .optional()
          .describe('Days (UTC) whose events have left D1, and which the page has read from the archive. Absent if it read none.'),
      }),
      'A page.',
    ],
  },
  command: {
    usage: 'list',
    flags: [
      ...eventFlags,
      ['--since <time>', 'at or after a time: 10m ago, or an ISO time', { is: 'instant' }],
      ['--until <time>', 'before a time: 10m ago, or an ISO time', { is: 'instant' }],
    ],
    table: {
      columns: [
        { title: 'TIME', of: ({ timestamp }) => timestamp },
        {
          title: 'STATUS',
          of: ({ status, partial: failed }) => (failed ? `${status} (a tool failed)` : status),
          colour: ({ status, partial: failed }) => (failed ? 'yellow' : statusColour(status)),
        },
        { title: 'SCOPE', of: ({ scope }) => scope },
        { title: 'TYPE', of: ({ type }) => type },
        { title: 'ID', of: ({ id }) => id },
        { title: 'ERROR', of: ({ error }) => error },
      ],
      empty: 'No event matches.',
    },
  },
})

export const replay = operation('get /v1/events/replay', 'replayEvents', 'Replay history as NDJSON, oldest first', {
  description: 'Reads the retained event log by the `timestamp` of the events. It changes nothing and does not contact any scope.',
  query: z.object({
    start: instant.default('1970-01-01T00:00:00.000Z').describe('Inclusive.'),
    end: instant.optional().describe('Exclusive.'),
    types: z.string().min(1).optional().meta({ description: 'Comma-separated types.', example: 'ws.message,timer.tick' }),
    scope: scopeName.optional(),
  }),
  answers: { 200: [null, 'Events, one per line.', texts.lines] },
})

export const find = operation('get /v1/events/{id}', 'getEvent', 'Get one event', {
  description:
    'Ids are unique per scope; without `scope` the newest event with the id is returned. ' +
    'With `scope`, an event that retention has deleted is read from its scope or the archive.',
  params: idPath,
  query: z.object({ scope: scopeName.optional() }),
  answers: { 200: [loggedEvent, 'The event.'] },
  problems: [404, 503],
  command: {
    usage: 'show <id>',
    help: 'Show an event',
    flags: [['--scope <scope>', 'its scope: ids are unique in one scope']],
    shows: ({ event, ...about }) => [about, '', { as: 'json', value: event, indent: 2 }],
  },
})

export const publishInScope = inScope('post /v1/scopes/{scope}/events', 'publishScopeEvents', 'Send events directly to one scope', {
  description:
    'Responds once the inbox has stored the events. With `wait=outcome`, responds once each event has its outcome, or with receipts when the time is up; `waiting` then tells why an event has no outcome yet. ' +
    'The outcome of an event is for the key that sent it and for the role viewer: another key that sends its id again gets the receipt, with 202. ' +
    'Outcomes beyond 4 MB in total are shortened (`shortened`): `GET /v1/scopes/{scope}/events/{id}` returns the full one.',
  roles: ['publisher'],
  params: scopePath,
  query: z.object({
    wait: z.literal('outcome').optional().describe('Respond once each event has its outcome. `timeout_ms` limits the wait.'),
    timeout_ms: z.coerce
      .number<string>()
      .int()
      .min(1)
      .max(limits.wait_ms)
      .default(WAIT_MS)
      .meta({
        description:
          `With \`wait=outcome\`: maximum wait in ms, ${WAIT_MS} by default and ${limits.wait_ms} at most. ` +
          'When the time is up, the response is 202 with the receipts, and processing continues.',
      }),
  }),
  ...sent,
  answers: { 200: [outcomes, 'The events with their outcomes.'], 202: [receipts, 'Accepted.'] },
})

export const listInScope = inScope(
  'get /v1/scopes/{scope}/events',
  'listScopeEvents',
  "List a scope's events with their outcomes, newest first",
  {
    description:
      'Read from the scope, so that it is current. An event without an outcome says why it waits. A page holds at most 4 MB and looks at most at 20,000 events: ' +
      'with `status` or `type` it may be shorter than `limit`. Events that retention has deleted are in `GET /v1/events`, or in the archive.',
    params: scopePath,
    query: z.object({
      status: z.enum(eventStatuses).optional(),
      partial,
      type: eventType,
      limit: pageLimit(1000),
      cursor: z.coerce.number<string>().int().min(1).optional(),
    }),
    answers: { 200: [paged(eventRecord), 'A page.'] },
  },
)

const eventPath = scopePath.extend(idPath.shape)

export const findInScope = inScope('get /v1/scopes/{scope}/events/{id}', 'getScopeEvent', 'Get one event from the scope', {
  params: eventPath,
  answers: { 200: [eventRecord, 'The event, its status and outcome.'] },
  problems: [404, 503],
  mcp: {
    name: 'explain_event',
    title: 'Why an event ended as it did',
    description: 'The event, its status, what decided it, or what it waits for. `explain_trace` has the steps, by its `trace_id`.',
    input: { scope: toolScope, ...idPath.shape },
  },
})

export const judge = inScope('post /v1/scopes/{scope}/events/{id}/feedback', 'judgeDecision', 'Judge the decision about an event', {
  description:
    'For people who see that a reflex or a turn decided well or badly. It changes nothing that was done. It counts in the metrics and the certificate of the reflex that decided, ' +
    'once for each event, and what is learned takes the reply as the right one. See docs/reflexes.md.',
  roles: ['operator'],
  params: eventPath,
  body: feedback,
  example: { right: false, reply: 'We open at nine.' },
  answers: { 200: [judged, 'The decision that was judged.'] },
  problems: [404, 409],
  command: {
    usage: 'feedback <scope> <id>',
    help: 'Say that the decision about an event was right or wrong',
    flags: [
      ['--right', 'it was right'],
      ['--wrong', 'it was wrong'],
      ['--reply <text>', 'the reply that would have been right; it is not sent'],
      ['--reason <text>', 'why'],
    ],
    wrong: ({ right, wrong }) => ((right === undefined) === (wrong === undefined) ? 'Say --right or --wrong.' : null),
    asks: ({ right, wrong: _wrong, ...more }) => ({ right: right === true, ...more }),
    shows: ({ decided: { by, reflex_id, version }, counted }) => [
      `The decision of ${by === 'reflex' ? `reflex ${reflex_id}@${version}` : 'a turn'} is judged` +
        `${counted ? ', and counts in its certificate or its metrics' : ''}.`,
    ],
  },
})
