import { expect } from 'vitest'
import type { Clean } from '../../src/base/secrets.ts'
import { withDefaults, type Event } from '../../src/core/event.ts'
import type { EventRecord } from '../../src/contract/event-record.ts'
import type { LogEntry } from '../../src/contract/log-entry.ts'
import { CRASH, crash, evict, inObject, runAlarm, type Stub, stubOf, until } from '../../testing/objects.ts'

let scopes = 0
/** A scope that no other test has. */
export const freshScope = (kind = 'test'): string => `${kind}/${(scopes += 1)}-${crypto.randomUUID().slice(0, 8)}`
export { CRASH, crash, evict, inObject, runAlarm, stubOf, until }

/** Tests hold no secrets unless they plant one, at an entrance. */
export type Note = Clean<Event & { text: string }>
export const note = (scope: string, text: string, fields: Record<string, unknown> = {}): Note =>
  withDefaults({ type: 'test.note', text, ...fields }, { now: Date.now(), source: 'test', scope }) as Note
export const textOf = (event: Event): string => (event as Note).text

export async function send(stub: Stub, ...events: Event[]): Promise<string[]> {
  expect(await stub.accept(events as Clean<Event>[], 'http')).toMatchObject({ ok: true })
  return events.map(({ id }) => id)
}

/** Sends, waits, and returns how each ended. */
export async function sendAndSettle(stub: Stub, ...events: Event[]): Promise<EventRecord[]> {
  const ids = await send(stub, ...events)
  expect(await stub.outcomes(ids, 20_000)).toMatchObject({ settled: true })
  const records = await Promise.all(ids.map((id) => stub.event(id)))
  return records.filter((record) => record !== null)
}

export async function logOf(stub: Stub): Promise<LogEntry[]> {
  const found: LogEntry[] = []
  // A page is also limited in bytes.
  for (;;) {
    const { entries } = await stub.readLog(found.at(-1)?.seq ?? 0, 10_000)
    if (entries.length === 0) return found
    found.push(...entries.map((text) => JSON.parse(text) as LogEntry))
  }
}

export async function entriesOf<Kind extends LogEntry['kind']>(stub: Stub, kind: Kind): Promise<Extract<LogEntry, { kind: Kind }>[]> {
  return (await logOf(stub)).filter((entry): entry is Extract<LogEntry, { kind: Kind }> => entry.kind === kind)
}

/** Makes what is delayed come due now, as if its time had passed, in one case so long ago. */
export async function hurry(stub: Stub, ago_ms = 1): Promise<void> {
  await inObject(stub, (state) => {
    state.storage.sql.exec(`UPDATE events SET due_at = min(due_at, ?) WHERE status = 'pending'`, Date.now() - 1)
    state.storage.sql.exec(
      `UPDATE events SET lease_until = ? WHERE status = 'processing' AND ack_token NOT LIKE 'turn:%' AND ack_token NOT LIKE 'reflex:%'`,
      Date.now() - 1,
    )
    state.storage.sql.exec('UPDATE timers SET next_at = min(next_at, ?)', Date.now() - Math.max(1, ago_ms))
  })
  await stub.poke()
}

const TIMES = {
  log: ['at'],
  events: ['accepted_at', 'ended_at'],
  effects: ['started_at', 'ended_at'],
  action_keys: ['at'],
  skill_runs: ['started_at', 'ended_at'],
  skill_outputs: ['at'],
  done_keys: ['at'],
}

/** All that the scope keeps is so many days older, and the scope forgets what is too old for it. */
export async function age(stub: Stub, days: number): Promise<void> {
  await inObject(stub, ({ storage }) => {
    for (const [table, columns] of Object.entries(TIMES)) {
      storage.sql.exec(`UPDATE ${table} SET ${columns.map((column) => `${column} = ${column} - ${days * 86_400_000}`).join(', ')}`)
    }
  })
  await evict(stub)
  await stub.state()
  // Waking set the alarm to now: if the runtime has taken it, its handler may not have begun.
  if (!(await runAlarm(stub))) await stub.poke()
}
