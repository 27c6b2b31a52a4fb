import { expect, test } from 'vitest'
import { ComputingShares, unboundedComputing, type Computing } from '../../../src/base/computing.ts'

/** Shares by a clock that passes only while somebody waits. */
function shared() {
  const time = { now: 1_000_000, waits: [] as number[] }
  const wait = async (ms: number) => {
    time.waits.push(ms)
    time.now += ms
  }
  const limits = { units_per_minute: 10_000_000, at_once: { key: 2, all: 3, most: 5 } }
  return { time, shares: new ComputingShares(limits, { now: () => time.now, wait }) }
}

async function entered(shares: ComputingShares, key: string): Promise<Computing> {
  const found = await shares.enter(key)
  if (!found.ok) throw new Error(found.reason)
  return found.computing
}

function* stepsOf(count: number, each: () => void) {
  for (let step = 0; step < count; step += 1) {
    each()
    yield
  }
  return 'done'
}

test('computing rests after some milliseconds, after some units, and after some steps', async () => {
  const { time, shares } = shared()
  const computing = await entered(shares, 'a')
  expect(await computing.run(stepsOf(6, () => (time.now += 5)))).toBe('done')
  expect(time.waits).toEqual([0, 0, 0])
  await computing.run(stepsOf(4, () => computing.spend(2_000_000)))
  expect(time.waits).toHaveLength(7)
  await computing.run(stepsOf(64, () => {}))
  expect(time.waits).toHaveLength(8)
})

test('a portion has more steps while they are short, and fewer once they are long', async () => {
  const time = { now: 0, computed: 0, portions: [] as number[] }
  let [steps, each_ms] = [0, 0.01]
  // The clock of a request stands still while it computes.
  const wait = async () => {
    time.now += time.computed
    time.portions.push(steps)
    ;[time.computed, steps] = [0, 0]
  }
  const computing = unboundedComputing({ now: () => time.now, wait })
  const step = () => {
    time.computed += each_ms
    steps += 1
  }
  await computing.run(stepsOf(5000, step))
  expect(time.portions.slice(0, 4)).toEqual([64, 128, 256, 512])
  expect(Math.max(...time.portions)).toBe(512)
  each_ms = 1
  time.portions.length = 0
  await computing.run(stepsOf(5000, step))
  expect(time.portions.slice(-3)).toEqual([16, 16, 16])
})

test('those who compute at once rest for the portions of the others', async () => {
  const { time, shares } = shared()
  const [one] = [await entered(shares, 'a'), await entered(shares, 'b'), await entered(shares, 'c')]
  one.spend(2_000_000)
  await one.rest()
  expect(time.waits).toEqual([20])
})

test('a key has a budget for a minute, whatever the number of its requests', async () => {
  const { time, shares } = shared()
  for (const units of [6_000_000, 4_000_000]) {
    const computing = await entered(shares, 'a')
    computing.spend(units)
    computing.leave()
  }
  time.now += 30_000
  expect(await shares.enter('a')).toEqual({ ok: false, reason: 'spent', retry_s: 30 })
  expect((await entered(shares, 'b')).left).toBe(10_000_000)
  time.now += 30_000
  expect((await entered(shares, 'a')).left).toBe(10_000_000)
})

test('a key has two places, and waits for one a while', async () => {
  const { time, shares } = shared()
  const [one, other] = [await entered(shares, 'a'), await entered(shares, 'a')]
  for (const computing of [one, other]) Object.defineProperty(computing, 'rested_at', { get: () => time.now })
  expect(await shares.enter('a')).toEqual({ ok: false, reason: 'busy', retry_s: 1 })
  expect((await shares.enter('b')).ok).toBe(true)
  one.leave()
  expect((await shares.enter('a')).ok).toBe(true)
})

test('the place of a request that was cut off lapses', async () => {
  const { time, shares } = shared()
  await entered(shares, 'a')
  await entered(shares, 'a')
  time.now += 6000
  expect((await shares.enter('a')).ok).toBe(true)
})

test('a key that has spent less than all that compute waits for no place, until there are too many', async () => {
  const { time, shares } = shared()
  const busy = await Promise.all(['a', 'b', 'c'].map((key) => entered(shares, key)))
  for (const computing of busy) computing.spend(1000)
  const fourth = await entered(shares, 'd')
  fourth.spend(10)
  await entered(shares, 'e')
  expect(time.waits).toEqual([])
  await shares.enter('f')
  expect(time.waits.length).toBeGreaterThan(0)
})

test('the next place is for a key without one, then for the one that has spent least, however long others wait', async () => {
  const time = { now: 0, looks: [] as (() => void)[] }
  const wait = (ms: number) => new Promise<void>((resolve) => time.looks.push(() => ((time.now += ms / 100), resolve())))
  const limits = { units_per_minute: 10_000_000, at_once: { key: 2, all: 3, most: 3 } }
  const shares = new ComputingShares(limits, { now: () => time.now, wait })
  const look = async () => {
    for (const one of time.looks.splice(0)) one()
    await new Promise((resolve) => setTimeout(resolve, 0))
  }
  const places = await Promise.all(['a', 'a', 'b'].map((key) => entered(shares, key)))
  for (const computing of places) computing.spend(1000)
  const order: string[] = []
  const waits = ['b', 'b', 'c', 'd'].map(async (key) => {
    const computing = await entered(shares, key)
    computing.spend(key === 'c' ? 500 : 100)
    order.push(key)
    return computing
  })
  await look()
  expect(order).toEqual([])
  for (const count of [1, 2, 3]) {
    places[count - 1]?.leave()
    await look()
    expect(order).toHaveLength(count)
  }
  expect(order).toEqual(['c', 'd', 'b'])
  ;(await waits[2])?.leave()
  await look()
  expect(order).toEqual(['c', 'd', 'b', 'b'])
})

test('nobody waits behind a request that was cut off while it waited', async () => {
  const time = { now: 0 }
  const limits = { units_per_minute: 10_000_000, at_once: { key: 1, all: 1, most: 1 } }
  let cut = true
  // A request that was cut off never continues.
  const wait = (ms: number) => (cut ? new Promise<void>(() => {}) : Promise.resolve(void (time.now += ms)))
  const shares = new ComputingShares(limits, { now: () => time.now, wait })
  const first = await entered(shares, 'a')
  first.spend(100)
  void shares.enter('b')
  cut = false
  first.leave()
  const next = shares.enter('c')
  expect((await next).ok).toBe(true)
  expect(time.now).toBeGreaterThan(1000)
  expect(time.now).toBeLessThan(1100)
})

test('a key has fifty requests that wait', async () => {
  const shares = new ComputingShares(
    { units_per_minute: 10, at_once: { key: 2, all: 3, most: 5 } },
    { now: () => 0, wait: () => new Promise<void>(() => {}) },
  )
  for (let nth = 0; nth < 52; nth += 1) void shares.enter('a')
  expect(await shares.enter('a')).toEqual({ ok: false, reason: 'busy', retry_s: 1 })
})

test('the key that computed most ends early where another one without a place has waited for three seconds', async () => {
  const time = { now: 0 }
  const limits = { units_per_minute: 10_000_000, at_once: { key: 2, all: 3, most: 3 } }
  const places: Computing[] = []
  const wait = async (ms: number) => {
    time.now += ms
    for (const one of places) {
      one.rested_at = time.now
      if (one.left === 0) one.leave()
    }
  }
  const shares = new ComputingShares(limits, { now: () => time.now, wait })
  for (const [key, units] of [
    ['a', 100],
    ['b', 300],
    ['c', 200],
  ] as const) {
    const one = await entered(shares, key)
    one.spend(units)
    places.push(one)
  }
  await entered(shares, 'd')
  expect(time.now).toBeGreaterThanOrEqual(3000)
  expect(time.now).toBeLessThan(3100)
  expect(places.map(({ called }) => called)).toEqual([false, true, false])
})

test('a key that has spent more has no place called back', async () => {
  const time = { now: 0 }
  const limits = { units_per_minute: 10_000_000, at_once: { key: 1, all: 1, most: 1 } }
  let place: Computing | undefined
  const wait = async (ms: number) => {
    time.now += ms
    if (place) place.rested_at = time.now
    if (place && time.now >= 6000) place.leave()
  }
  const shares = new ComputingShares(limits, { now: () => time.now, wait })
  const rich = await entered(shares, 'rich')
  rich.spend(1000)
  rich.leave()
  place = await entered(shares, 'poor')
  place.spend(10)
  await entered(shares, 'rich')
  expect(place.called).toBe(false)
  expect(time.now).toBeGreaterThanOrEqual(6000)
})
