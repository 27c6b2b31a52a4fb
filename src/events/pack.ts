import { z } from 'zod'
import type { QueueMessage } from '../env.ts'
import { scopeName, type Event } from '../core/event.ts'
import { byteLength } from '../base/byte-length.ts'
import { limits } from '../base/limits.ts'

/** What the consumers rely on; the events themselves were parsed when they were accepted. */
export const queueMessage = z
  .object({ scope: scopeName, events: z.array(z.looseObject({ id: z.string(), scope: scopeName, type: z.string() })).min(1) })
  .refine(({ scope, events }) => events.every((event) => event.scope === scope), 'every event is of the scope that the message names')

/** Messages of up to 100 kB, each with events of one scope: a queue's limit and its price are by message, not by byte. */
export function pack(events: readonly Event[]): { message: QueueMessage; bytes: number }[] {
  return Array.from(Map.groupBy(events, ({ scope }) => scope)).flatMap(([scope, group]) => packScope(scope, group))
}

function packScope(scope: string, group: readonly Event[]): { message: QueueMessage; bytes: number }[] {
  const packed: { message: QueueMessage; bytes: number }[] = []
  for (const event of group) {
    const bytes = byteLength(JSON.stringify(event)) + 1
    const last = packed.at(-1)
    if (last && last.bytes + bytes <= limits.queue_message_bytes) {
      last.message.events.push(event)
      last.bytes += bytes
    } else {
      packed.push({ message: { scope, events: [event] }, bytes })
    }
  }
  return packed
}
