import { setTimeout as wait } from 'node:timers/promises'
import type { Api } from '../lib/api.ts'
import { batches } from '../lib/batches.ts'
import type { LineEvent } from './log-event.ts'

type Sending = { events: readonly LineEvent[]; speed: number | null; signal: AbortSignal; onSent: (lines: number) => void }

/**
 * Sends the events in batches, each after the previous one was accepted, so that a scope receives
 * its lines in the log's order.
 */
export async function sendLines(api: Api, { events, speed, signal, onSent }: Sending): Promise<void> {
  const started = performance.now()
  let sent = 0
  // About ten batches a second, so that a slow rate stays even.
  for await (const batch of batches(events, { most: speed === null ? undefined : Math.ceil(speed / 10) })) {
    if (speed !== null) await wait(Math.max(0, started + (sent / speed) * 1000 - performance.now()), undefined, { signal })
    await api.json<unknown>('/v1/events', { method: 'POST', body: batch, signal })
    sent += batch.length
    onSent(batch.length)
  }
}
