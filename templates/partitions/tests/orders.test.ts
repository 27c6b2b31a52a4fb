import { missingExports, testScope } from 'reflex-agents/testing'
import { expect, test } from 'vitest'
import { partitionOf } from '../src/agents/orders.ts'
import * as worker from '../src/index.ts'
import form from '../src/try.json'

const order = (total: number) => ({ type: 'shop.order', order: 'o-1', customer: 'Ada', total })

test('gives a customer the same one of sixteen partitions each time', () => {
  expect(partitionOf('eu', 'Ada')).toBe(partitionOf('eu', 'Ada'))
  const customers = Array.from({ length: 500 }, (_, index) => partitionOf('eu', `customer ${index}`))
  expect(new Set(customers).size).toBe(16)
})

test('sends the first event of try.json to the partition of its customer', () => {
  expect(form.scope).toBe(partitionOf('eu', form.fields.find(({ name }) => name === 'customer')?.value ?? ''))
})

test('ends a small order in its partition, and passes a large one on', async () => {
  const scope = await testScope(worker.Scope.agents, { scope: partitionOf('eu', 'Ada') })
  expect((await scope.send(order(20))).status).toBe('ignored')
  expect(await scope.send(order(2000))).toMatchObject({ status: 'completed', outcome: { result: { forwarded: 1 } } })
})

test('holds orders once a region has more than it takes in a day', async () => {
  const scope = await testScope(worker.Scope.agents, { scope: 'regions/us' })
  const large = (total: number) => ({ ...order(total), type: 'shop.large' })
  expect(await scope.send(large(30_000))).toMatchObject({ outcome: { result: { total: 30_000 } } })
  await scope.send(large(30_000))
  expect(await scope.replies()).toEqual(['regions/us has large orders of 60000 today: hold o-1'])
})

test('exports what wrangler.toml binds', () => {
  expect(missingExports(worker)).toEqual([])
})
