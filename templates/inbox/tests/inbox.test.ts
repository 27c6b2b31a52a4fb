import { missingExports, testScope } from 'reflex-agents/testing'
import { expect, test } from 'vitest'
import * as worker from '../src/index.ts'

const mail = { type: 'mail.received', id: 'mail-1', from: 'ada@example.com', subject: 'Wrong invoice', text: 'The address is wrong.' }
const assign = { tool: 'assign', input: { mail: 'mail-1', queue: 'billing' } }

test('puts a mail into the queue that the model names', async () => {
  const scope = await testScope(worker.Scope.agents, { scope: 'inbox/support', model: [assign, 'Done.'] })
  expect(await scope.send(mail)).toMatchObject({ status: 'completed', outcome: { by: 'turn', result: { text: 'Done.' } } })
  expect(await scope.calls()).toMatchObject([{ ...assign, status: 'ok' }])
})

test('refuses a queue that does not exist, and tells the model', async () => {
  const nowhere = { tool: 'assign', input: { mail: 'mail-1', queue: 'nowhere' } }
  const scope = await testScope(worker.Scope.agents, { scope: 'inbox/support', model: [nowhere, assign, 'Done.'] })
  await scope.send(mail)
  expect((await scope.calls()).filter(({ status }) => status === 'ok')).toMatchObject([assign])
})

test('exports what wrangler.toml binds', () => {
  expect(missingExports(worker)).toEqual([])
})
