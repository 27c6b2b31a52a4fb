import { missingExports, testScope } from 'reflex-agents/testing'
import { expect, test } from 'vitest'
import * as worker from '../src/index.ts'

test('answers a message', async () => {
  // By the agent that serves this scope in the deployment.
  const scope = await testScope(worker.Scope.agents, { scope: 'chat/ada', model: ['Hello, Ada!'] })
  const ended = await scope.send({ type: 'ws.message', connection_id: 'ada', content: 'I am Ada' })
  expect(ended.status).toBe('completed')
  expect(await scope.replies()).toEqual(['Hello, Ada!'])
})

test('exports what wrangler.toml binds', () => {
  expect(missingExports(worker)).toEqual([])
})
