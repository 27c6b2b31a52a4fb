import { expect, test } from 'vitest'
import type { Alarm, Due } from '../../../src/scope/alarm.ts'
import type { Database } from '../../../src/scope/database.ts'
import { Outbox } from '../../../src/scope/outbox.ts'
import type { Unit } from '../../../src/scope/unit.ts'
import { part } from '../agents/agent-fixtures.ts'

/** Of a scope whose events D1 all knows. `also` is what else is told. */
function outboxOf(also: (db: D1Database) => Promise<void>) {
  let due: Due = () => null
  const db = part<D1Database>({ prepare: () => ({ bind: () => ({}) }), batch: async () => [] })
  const outbox = new Outbox({
    database: part<Database>({ first: () => ({ n: 0 }), all: () => [] }),
    db,
    alarm: part<Alarm>({ source: (next: Due) => void (due = next), by: () => {}, rearm: () => {} }),
    now: () => 5000,
    scope: () => ({ scope: 's', agent: 'a', open: 0, parked: 0 }),
    guard: { note: () => {}, deaths: () => 0, park: () => {}, parkedAt: () => null },
    unit: (work) => work(part<Unit>({})),
    wake: () => null,
    also: { waits: true, tell: also },
  })
  return { outbox, due: () => due(5000) }
}

test('what changes while D1 is told of the last of it is told next', async () => {
  const told = Promise.withResolvers<void>()
  const { outbox, due } = outboxOf(() => told.promise)
  const flushed = outbox.flush()
  outbox.changed()
  told.resolve()
  await flushed
  expect(due()).toBe(5800)
})

test('where nothing changes meanwhile, nothing is told again', async () => {
  const { outbox, due } = outboxOf(async () => {})
  outbox.changed()
  await outbox.flush()
  expect(due()).toBeNull()
})
