import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { SqlEventStore } from '../../../src/core/event-store.ts'
import { buildEvent } from '../../support/build-event.ts'
import { claimNext } from '../../support/claim-next.ts'
import { openEvents } from '../../support/sqlite.ts'
import { assertProperty } from '../../support/property.ts'

const MAX_ATTEMPTS = 3
const LEASE_MS = 1000
const OUTCOMES = ['completed', 'dead_lettered']

type Modelled = {
  seq: number
  key: string
  status: string
  attempts: number
  due_at: number
  lease_until: number | null
  ack_token: string | null
}
type Step =
  | { do: 'publish'; ids: number[]; scope: string }
  | { do: 'claim' | 'crash' }
  | { do: 'ack' | 'nack'; pick: number }
  | { do: 'advance'; ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('publish' as const),
      ids: fc.array(fc.nat(9), { maxLength: 4 }),
      scope: fc.constantFrom('a', 'b'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('claim' as const, 'crash' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('ack' as const, 'nack' as const), pick: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('advance' as const), ms: fc.constantFrom(1, 499, 500, 999, 1000, 2500) }) },
)

/** The reference model of the store: a list of events and the rules that move them. */
class Model {
  now = 1_000_000
  events: Modelled[] = []

  publish(keys: string[]): string[] {
    return keys.map((key) => {
      if (this.events.some((event) => event.key === key)) return 'duplicate'
      const fresh = { status: 'pending', attempts: 0, due_at: 0, lease_until: null, ack_token: null }
      this.events.push({ seq: this.events.length + 1, key, ...fresh })
      return 'accepted'
    })
  }

  /** The event that must be claimed next, after leases that ran out were taken back. */
  claimable(): Modelled | undefined {
    for (const event of this.events) if (event.lease_until !== null && event.lease_until <= this.now) this.fail(event)
    const due = this.events.filter((event) => event.status === 'pending' && event.due_at <= this.now)
    return due.sort((left, right) => left.seq - right.seq)[0]
  }

  claim(event: Modelled, ack_token: string): void {
    Object.assign(event, { status: 'processing', attempts: event.attempts + 1, lease_until: this.now + LEASE_MS, ack_token })
  }

  settle(ack_token: string, how: 'ack' | 'nack'): boolean {
    const event = this.events.find((other) => other.ack_token === ack_token)
    if (!event) return false
    if (how === 'ack') Object.assign(event, { status: 'completed', lease_until: null, ack_token: null })
    else this.fail(event)
    return true
  }

  fail(event: Modelled): void {
    const dead = event.attempts >= MAX_ATTEMPTS
    const due_at = dead ? 0 : this.now + 500 * 2 ** (event.attempts - 1)
    Object.assign(event, { status: dead ? 'dead_lettered' : 'pending', due_at, lease_until: null, ack_token: null })
  }
}

function setUp() {
  const model = new Model()
  const { run, rows } = openEvents()
  const store = new SqlEventStore({ run, now: () => model.now, random: () => 0, max_attempts: MAX_ATTEMPTS, poll_ms: 60_000 })
  const tokens: string[] = []
  const seen = () =>
    rows().map((row, index) => {
      const { id, scope, status, attempts, due_at, lease_until, ack_token } = row
      // A duplicate leaves a gap in the table's own seq; the order is what counts.
      return { seq: index + 1, key: `${String(scope)} ${String(id)}`, status, attempts, due_at, lease_until, ack_token }
    })

  /** A crash is a claim that nobody settles; later steps may try its token. */
  async function claim(): Promise<boolean> {
    const before = seen()
    const expected = model.claimable()
    const delivery = await claimNext(store, { lease_ms: LEASE_MS })
    expect(delivery && `${delivery.event.scope} ${delivery.event.id}`).toBe(expected?.key)
    if (!delivery || !expected) return false
    model.claim(expected, delivery.ack_token)
    expect(delivery.attempts).toBe(expected.attempts)
    if (delivery.attempts === 1) {
      const older = before.filter((event) => event.attempts === 0 && event.seq < expected.seq)
      expect(older).toEqual([])
    }
    tokens.push(delivery.ack_token)
    return true
  }

  async function settle(how: 'ack' | 'nack', pick: number): Promise<void> {
    const token = tokens[pick % Math.max(1, tokens.length)] ?? 'never given'
    const before = seen()
    const settled = await store[how](token)
    expect(settled).toBe(model.settle(token, how))
    if (!settled) expect(seen()).toEqual(before)
  }

  async function take(next: Step): Promise<void> {
    switch (next.do) {
      case 'publish': {
        const receipts = await store.publish(...next.ids.map((id) => buildEvent({ id: `id-${id}`, scope: next.scope })))
        expect(receipts.map(({ status }) => status)).toEqual(model.publish(next.ids.map((id) => `${next.scope} id-${id}`)))
        return
      }
      case 'claim':
      case 'crash':
        await claim()
        return
      case 'ack':
      case 'nack':
        await settle(next.do, next.pick)
        return
      case 'advance':
        model.now += next.ms
    }
  }

  return { model, seen, take, claim, settle, tokens }
}

test('whatever is published, claimed, settled and abandoned, in any order: nothing is lost, doubled or retried for ever', async () => {
  await assertProperty(
    'core/event-store: any steps',
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { model, seen, take } = setUp()
      for (const next of steps) {
        await take(next)
        const now = seen()
        expect(now).toEqual(model.events)
        expect(now.every((event) => Number(event.attempts) <= MAX_ATTEMPTS)).toBe(true)
        expect(now.every((event) => ['pending', 'processing', ...OUTCOMES].includes(String(event.status)))).toBe(true)
        expect(now.every((event) => (event.status === 'processing') === (event.ack_token !== null))).toBe(true)
      }
    }),
    { numRuns: 150 },
  )
})

test('however badly it began, every event reaches exactly one outcome once consumers are well again', async () => {
  await assertProperty(
    'core/event-store: well again',
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { model, seen, take, claim, settle, tokens } = setUp()
      for (const next of steps) await take(next)
      const published = seen().map(({ key }) => key)
      for (let round = 0; round < 4; round += 1) {
        model.now += 10 * LEASE_MS
        while (await claim()) await settle('ack', tokens.length - 1)
      }
      expect(seen().map(({ key }) => key)).toEqual(published)
      expect(seen().filter((event) => !OUTCOMES.includes(String(event.status)))).toEqual([])
    }),
    { numRuns: 75 },
  )
})
