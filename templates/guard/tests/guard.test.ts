import { missingExports, testScope } from 'reflex-agents/testing'
import { expect, test } from 'vitest'
import * as worker from '../src/index.ts'

const failed = (address: string) => ({ type: 'log.line', line: `Failed password for root from ${address} port 4242 ssh2` })

test('blocks an address after three failures, and no other one', async () => {
  const scope = await testScope(worker.Scope.agents, { scope: 'guard/web-1' })
  for (const address of ['203.0.113.9', '198.51.100.7', '203.0.113.9']) await scope.send(failed(address))
  expect(await scope.calls()).toEqual([])
  await scope.send(failed('203.0.113.9'))
  expect(await scope.calls()).toMatchObject([{ tool: 'block', input: { address: '203.0.113.9' }, status: 'ok' }])
})

test('ignores lines about other things', async () => {
  const scope = await testScope(worker.Scope.agents, { scope: 'guard/web-1' })
  const ended = await scope.send({ type: 'log.line', line: 'Accepted publickey for ada from 203.0.113.9 port 4242 ssh2' })
  expect(ended.status).toBe('ignored')
})

test('exports what wrangler.toml binds', () => {
  expect(missingExports(worker)).toEqual([])
})
