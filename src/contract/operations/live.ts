import { z } from 'zod'
import { limits } from '../../base/limits.ts'
import { operations, texts } from '../operation.ts'
import { problem } from '../problem.ts'
import { keyDeleted, tooFarBehind } from '../scope-api.ts'
import { scopePath } from './shared.ts'

const operation = operations({ tag: 'Live', roles: ['publisher', 'viewer'], scoped: true })
const seq = z.coerce.number<string>().int().min(0).optional()
const after = seq.describe('The last `seq` seen: newer log entries are sent first. Without it, only new entries are sent.')
const ticket = z.string().optional().describe('A one-time ticket, in place of a key.')

export const socket = operation('get /v1/scopes/{scope}/ws', 'openSocket', 'Open a WebSocket', {
  description:
    'JSON in both directions. **In** (role publisher): an event, or `{"content": "…"}`, which is a `ws.message` of this connection; with the role operator also ' +
    '`{"type": "approve" or "reject", "approval_id", "reason"?}`. **Out**: `{"type": "ack", "id", "status"}` once an event is durable or a decision is recorded; `{"type": "error", "errors"}` for invalid input, after which the socket stays open; `{"type": "log", "entry"}` for ' +
    'each log entry, or with `?frames=units` `{"type": "log", "entries"}` for all entries of a unit of work; `{"type": "delta", "turn_id", "content"}` for parts of a response in progress, with `"from": 0` for the whole response so far, which a socket gets that opens meanwhile, and with `event_id` for the whole reply of a reflex, ahead of its entry `reply-sent`. `ping` is answered with `pong`. Clients that cannot set headers, such as browsers, request a ticket ' +
    'and pass it as `?ticket=`. The first frame is `{"type": "open", "seq"}`: log entries after this `seq` follow. To resume without a gap, pass `?after=SEQ` with the last `seq` of an ' +
    `entry, or of \`open\` if no entry has arrived. A socket whose key was deleted or has expired is closed with ${keyDeleted.code} (${keyDeleted.reason}) ` +
    'within a minute of use; reconnecting with that key is rejected. After every 64 kB the scope sends `{"type": "mark", "sent"}`: **return it unchanged** once ' +
    `the preceding frames are processed. The scope sends at most ${limits.unread_bytes / 1024} kB beyond the last returned mark, and continues from the log when the next one is returned. ` +
    `If no mark is returned for 30 s, the socket is closed with ${tooFarBehind.code}; \`?after=SEQ\` resumes without a gap. A client that never returns a mark is sent 4 MB a second, and closed with ${tooFarBehind.code} after ${limits.unconfirmed_bytes / 1024 / 1024} MB. A socket accepts ${limits.socket_messages_per_second} messages per second; ` +
    `further messages are answered with an error. A key may have at most ${limits.connections_per_key} open sockets and streams per scope (429).`,
  params: scopePath,
  query: z.object({
    after,
    ticket,
    connection_id: z.string().min(1).max(128).optional().describe("The name of this connection; defaults to the key's name."),
    frames: z
      .enum(['entries', 'units'])
      .optional()
      .describe('What a `log` frame has: one entry, or an array with all entries of a unit of work. Default `entries`.'),
  }),
  answers: { 101: [null, 'The socket is open.'] },
  problems: [503],
  refusals: { 426: [null, 'Not a WebSocket upgrade request.', { 'application/problem+json': problem }] },
})

export const stream = operation('get /v1/scopes/{scope}/stream', 'streamLog', 'Follow the log as server-sent events', {
  description:
    'Each event is named `log`; its `id` is the `seq` and its data the entry. A `Last-Event-ID` header resumes the stream; an EventSource sends it automatically, even before the ' +
    'first entry, because the stream starts with the `id` of the position before it. A stream ends within about a minute after its key was deleted or has expired, or if nothing was read from it for a minute.',
  roles: ['viewer'],
  params: scopePath,
  query: z.object({ after, ticket }),
  answers: { 200: [null, 'The stream.', texts.events] },
})

export const createTicket = operation('post /v1/scopes/{scope}/tickets', 'createTicket', 'Get a one-time ticket', {
  description:
    'Valid for one connection to this scope, for 60 s, with the base roles of the requesting key. If that key is deleted, the connection is closed. ' +
    'The deployment signs it with `REFLEX_TICKET_SECRET` or a key derived from `REFLEX_ADMIN_KEY`; replacing that secret invalidates unused tickets. 409: neither is set.',
  roles: ['viewer', 'publisher'],
  params: scopePath,
  answers: { 201: [z.object({ ticket: z.string(), expires_at: z.iso.datetime() }), 'The ticket.'] },
  problems: [409],
})
