import { describe, expect, test } from 'vitest'
import type { Alarm, DueTime } from '../../../src/kernel/alarm.ts'
import type { Database } from '../../../src/kernel/unit.ts'
import { Outbox } from '../../../src/kernel/outbox.ts'
import { pauses } from '../../../src/base/backoff.ts'
import { part } from '../agents/agent-fixtures.ts'

/** The outbox of a scope whose events D1 has all. `source` is what else is replicated. */
function outboxOf(source: () => Promise<void>, send = async () => {}) {
  let due: DueTime = () => null
  let source_due: number | null = null
  const outbox = new Outbox({
    database: part<Database>({ laid: true, first: () => ({ n: 0 }), all: () => [] }),
    alarm: part<Alarm>({ source: (next: DueTime) => void (due = next), by: () => {}, rearm: () => {} }),
    now: () => 5000,
    pace: { gather_ms: 800, most_items: 50, pauses: pauses.replication, failed: 'failed to replicate' },
  })
  outbox.source('replica', { send })
  outbox.source('other', { send: source, due: () => source_due })
  return { outbox, change: () => outbox.soon('replica'), due: () => due(5000), sourceDue: (at: number | null) => void (source_due = at) }
}

describe('the outbox', () => {
  test('replicates a change that comes during a flush in the next one', async () => {
    const sent = Promise.withResolvers<void>()
    const { outbox, change, due } = outboxOf(() => sent.promise)
    const flushed = outbox.flush(Infinity)
    change()
    sent.resolve()
    await flushed
    expect(due()).toBe(5800)
  })

  test('is not due again where nothing changed during a flush', async () => {
    const { outbox, change, due } = outboxOf(async () => {})
    change()
    await outbox.flush(Infinity)
    expect(due()).toBeNull()
  })

  test('reports no due time of a source that the flush sends', async () => {
    const reported: (number | null)[] = []
    const { outbox, due, sourceDue } = outboxOf(
      async () => sourceDue(null),
      async () => void reported.push(due()),
    )
    sourceDue(4000)
    expect(due()).toBe(4000)
    await outbox.flush(Infinity)
    expect(reported).toEqual([null])
  })

  test('retries what failed, with longer pauses each time', async () => {
    const { outbox, due } = outboxOf(async () => Promise.reject(new Error('D1 is away')))
    await outbox.flush(Infinity)
    expect(due()).toBe(6000)
    await outbox.flush(Infinity)
    expect(due()).toBe(7000)
    expect(outbox.lastError).toBe('D1 is away')
  })
})
