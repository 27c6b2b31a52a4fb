import { expect, test } from 'vitest'
import { partitionOf } from '../../../templates/partitions/src/agents/orders.ts'
import type { Event } from '../../../src/core/event.ts'
import { note, stubOf, until } from '../../support/scopes.ts'

const region = `r${crypto.randomUUID().slice(0, 8)}`
const customers = Array.from({ length: 200 }, (_, index) => `customer ${index}`)

function order(customer: string, total: number): Event {
  const { text: _text, ...common } = note(partitionOf(region, customer), '')
  return { ...common, type: 'shop.order', order: `order of ${customer}`, customer, total } as Event
}

async function sent(orders: readonly Event[]): Promise<void> {
  for (const [scope, some] of Map.groupBy(orders, (one) => one.scope))
    expect(await stubOf(scope).accept(some as never, 'http')).toMatchObject({ ok: true })
}

test('each customer has one partition, and customers use all sixteen', () => {
  const partitions = customers.map((customer) => partitionOf('eu', customer))
  expect(customers.map((customer) => partitionOf('eu', customer))).toEqual(partitions)
  expect(new Set(partitions)).toEqual(new Set(Array.from({ length: 16 }, (_, index) => `orders/eu:${index}`)))
})

test('partitions end small orders by themselves, and the scope that decides hears each large one once', async () => {
  const small = customers.map((customer) => order(customer, 20))
  const large = customers.slice(0, 12).map((customer) => order(customer, 5000))
  await sent([...small, ...large])
  const decides = stubOf(`regions/${region}`)
  await until(async () => (await decides.state()).counters.completed === large.length, 'the region has decided')
  expect(await decides.event(`${large[0]?.id}.large`)).toMatchObject({ status: 'completed' })
  const { counters } = await decides.state()
  const { scratch } = await decides.context(10)
  expect(counters).toMatchObject({ accepted: large.length, duplicates: 0 })
  expect(scratch).toMatchObject({ total: 60_000 })
  const states = await Promise.all([...new Set(small.map(({ scope }) => scope))].map((scope) => stubOf(scope).state()))
  expect(states.reduce((sum, state) => sum + state.counters.ignored, 0)).toBe(small.length)
})
