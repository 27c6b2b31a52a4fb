import type { QueueMessage } from '../env.ts'
import { scopeName, type Event } from '../core/event.ts'
import { byteLength } from '../base/byte-length.ts'
import { limits } from '../base/limits.ts'

/** As long as a source. */
const MOST_SENDER = 256

/** Checks only what the consumers rely on: the events were validated when they were accepted. */
export function readMessage(body: unknown): QueueMessage | null {
  if (!isFields(body) || !Array.isArray(body['events']) || body['events'].length === 0) return null
  const { scope, events, sender } = body
  if (!scopeName.safeParse(scope).success) return null
  const isOfScope = (event: unknown): boolean =>
    isFields(event) && event['scope'] === scope && typeof event['id'] === 'string' && typeof event['type'] === 'string'
  if (!events.every(isOfScope)) return null
  const message = body as QueueMessage
  if (sender === undefined) return message
  if (typeof sender !== 'string' || sender === '' || sender.length > MOST_SENDER) return null
  return { ...message, events: message.events.map((event) => ({ ...event, meta: { sender, ...event.meta } })) }
}

const isFields = (value: unknown): value is { [name: string]: unknown } => typeof value === 'object' && value !== null

export type PackedMessage = { message: QueueMessage; bytes: number }

/** Packs the events of each scope into messages: a queue is billed, and limited, by the message. */
export function pack(events: readonly Event[], batch?: string): PackedMessage[] {
  return Array.from(Map.groupBy(events, ({ scope }) => scope)).flatMap(([scope, group]) =>
    packScope({ scope, ...(batch && { batch }) }, group),
  )
}

function packScope(head: Omit<QueueMessage, 'events'>, group: readonly Event[]): PackedMessage[] {
  const packed: PackedMessage[] = []
  for (const event of group) {
    const bytes = byteLength(JSON.stringify(event)) + 1
    const last = packed.at(-1)
    if (last && last.bytes + bytes <= limits.queue_message_bytes) {
      last.message.events.push(event)
      last.bytes += bytes
    } else {
      packed.push({ message: { ...head, events: [event] }, bytes })
    }
  }
  return packed
}

const MOST_MESSAGES = 100
/** The limit of one `sendBatch`, less its envelope. */
const MOST_BYTES = 240_000

export function grouped(packed: readonly PackedMessage[]): QueueMessage[][] {
  const groups: QueueMessage[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const { message, bytes: size } of packed) {
    if (bytes + size > MOST_BYTES || (groups.at(-1)?.length ?? 0) >= MOST_MESSAGES) {
      groups.push([])
      bytes = 0
    }
    groups.at(-1)?.push(message)
    bytes += size
  }
  return groups
}
