import { missingExports, testScope } from 'reflex-agents/testing'
import { afterEach, expect, test, vi } from 'vitest'
import * as worker from '../src/index.ts'

const order = { type: 'order.placed', order: 'A-1001', item: 'chair' }

const env = { WAREHOUSE_URL: 'https://warehouse.example.com/shipments' }
afterEach(() => vi.restoreAllMocks())
const warehouse = () => vi.spyOn(globalThis, 'fetch').mockImplementation(async () => new Response())

test('ships an order once, although its event arrives twice', async () => {
  const scope = await testScope(worker.Scope.agents, { scope: 'orders/eu', env })
  const shipments = warehouse()
  expect(await scope.send(order)).toMatchObject({ status: 'completed', outcome: { result: { orders: 1 } } })
  await scope.send(order)
  expect(shipments).toHaveBeenCalledTimes(1)
  const ended = await scope.calls()
  expect(ended.filter(({ status }) => status === 'ok')).toMatchObject([{ tool: 'ship', input: { order: 'A-1001', item: 'chair' } }])
})

test('keeps orders as dead letters until it knows a warehouse', async () => {
  const scope = await testScope(worker.Scope.agents, { scope: 'orders/us', settings: { max_attempts: 1 } })
  expect(await scope.send({ ...order, order: 'A-1' })).toMatchObject({
    status: 'dead_lettered',
    error: expect.stringContaining('WAREHOUSE_URL'),
  })
})

test('refuses an order without an item', async () => {
  const scope = await testScope(worker.Scope.agents, { scope: 'orders/eu' })
  await expect(scope.send({ type: 'order.placed', order: 'A-1002' })).rejects.toThrow('item')
})

test('exports what wrangler.toml binds', () => {
  expect(missingExports(worker)).toEqual([])
})
