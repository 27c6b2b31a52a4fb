import { missingExports, testScope, type ModelAnswer } from 'reflex-agents/testing'
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

test('puts each mail of a burst into its queue', async () => {
  const assignEach: ModelAnswer = ({ text, messages }) => {
    const mails = Array.from(text.matchAll(/^Mail (\S+)/gm), ([, id]) => id)
    const next = mails[messages.filter(({ role }) => role === 'tool').length]
    return next === undefined ? 'Done.' : { tool: { name: 'assign', input: { mail: next, queue: 'billing' } } }
  }
  const scope = await testScope(worker.Scope.agents, { scope: 'inbox/burst', model: [assignEach] })
  const mails = Array.from({ length: 30 }, (_, index) => ({ ...mail, id: `mail-${index}` }))
  await Promise.all(mails.map((one) => scope.send(one)))
  const assigned = (await scope.calls()).map(({ input }) => input)
  expect(assigned).toEqual(mails.map(({ id }) => ({ mail: id, queue: 'billing' })))
})

test('exports what wrangler.toml binds', () => {
  expect(missingExports(worker)).toEqual([])
})
