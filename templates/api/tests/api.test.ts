import { missingExports, testScope } from 'reflex-agents/testing'
import { expect, test } from 'vitest'
import * as worker from '../src/index.ts'

const order = { type: 'order.placed', order: 'A-1001', item: 'chair' }

test('ships an order once, although its event arrives twice', async () => {
  const scope = await testScope(worker.Scope.agents, { scope: 'orders/eu' })
  expect(await scope.send(order)).toMatchObject({ status: 'completed', outcome: { result: { orders: 1 } } })
  await scope.send(order)
  const ended = await scope.calls()
  expect(ended.filter(({ status }) => status === 'ok')).toMatchObject([{ tool: 'ship', input: { order: 'A-1001', item: 'chair' } }])
})

test('refuses an order without an item', async () => {
  const scope = await testScope(worker.Scope.agents, { scope: 'orders/eu' })
  await expect(scope.send({ type: 'order.placed', order: 'A-1002' })).rejects.toThrow('item')
})

test('exports what wrangler.toml binds', () => {
  expect(missingExports(worker)).toEqual([])
})
