import { z } from 'zod'
import type { QueueMessage } from '../bindings.ts'
import { scopeName, type Event } from '../core/event.ts'
import { jsonChunks } from '../protocol/json-chunks.ts'
import { limits } from '../protocol/limits.ts'

/** What the consumers rely on; the events themselves were parsed when they were accepted. */
export const queueMessage = z.object({ scope: scopeName, events: z.array(z.looseObject({ id: z.string(), scope: scopeName, type: z.string() })).min(1) })

/** Messages of up to 100 kB, each with events of one scope: a queue's limit and its price are by message, not by byte. */
export function pack(events: readonly Event[]): { message: QueueMessage; bytes: number }[] {
  return Array.from(Map.groupBy(events, ({ scope }) => scope)).flatMap(([scope, group]) =>
    // A third of the limit in characters is within it in bytes, whatever they are; plain ASCII is measured exactly by its length.
    jsonChunks(group.map((event) => JSON.stringify(event)), limits.queue_message_bytes).flatMap((chunk) => split(scope, chunk)),
  )
}

function split(scope: string, chunk: string): { message: QueueMessage; bytes: number }[] {
  const bytes = new TextEncoder().encode(chunk).byteLength
  const events = JSON.parse(chunk) as Event[]
  const [first, ...rest] = events
  if (bytes <= limits.queue_message_bytes || !first || rest.length === 0) return [{ message: { scope, events }, bytes }]
  const half = Math.ceil(events.length / 2)
  return [events.slice(0, half), events.slice(half)].flatMap((part) => split(scope, JSON.stringify(part)))
}
