import { hexHash } from '../../../src/base/hash.ts'
import { createHash, randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { textOf, writePrivate } from '../profiles.ts'
import type { SentEvent } from './read-events.ts'

const place = z.object({ prefix: z.string(), sent: z.number().int().min(0), digest: z.string() })
/**
 * The progress of a sending. Generated ids are the prefix with the event's number; `digest` is over
 * the events that were sent.
 */
export type SendPosition = z.infer<typeof place>

export const freshPlace = (prefix: string = randomUUID()): SendPosition => ({ prefix, sent: 0, digest: '' })

export const advanced = ({ prefix, sent, digest }: SendPosition, event: SentEvent): SendPosition => ({
  prefix,
  sent: sent + 1,
  digest: createHash('sha256')
    .update(digest + JSON.stringify(event))
    .digest('hex'),
})

/** Returns the place if the events begin as those that were sent; a file may have changed. */
export async function confirmed(stored: SendPosition, events: AsyncIterable<SentEvent>): Promise<SendPosition> {
  let now: SendPosition = { ...stored, sent: 0, digest: '' }
  if (stored.sent > 0) {
    for await (const event of events) {
      now = advanced(now, event)
      if (now.sent === stored.sent) break
    }
  }
  return now.sent === stored.sent && now.digest === stored.digest ? stored : freshPlace()
}

/** Remembers how far a sending was until it is complete. */
export type Memory = { stored: SendPosition | null; save: (place: SendPosition) => void; forget: () => void }

/** `what`: everything that makes two calls the same one, such as the server and the files. */
export function memoryOf(folder: string, what: readonly string[]): Memory {
  const name = hexHash(JSON.stringify(what)).slice(0, 32)
  const path = join(folder, 'sends', `${name}.json`)
  return {
    stored: parsed(textOf(path)),
    save: (place) => writePrivate(path, JSON.stringify(place)),
    forget: () => rmSync(path, { force: true }),
  }
}

/** For input that cannot be read again. */
export const noMemory: Memory = { stored: null, save: () => {}, forget: () => {} }

function parsed(text: string | null): SendPosition | null {
  if (text === null) return null
  try {
    return place.parse(JSON.parse(text))
  } catch {
    return null
  }
}
