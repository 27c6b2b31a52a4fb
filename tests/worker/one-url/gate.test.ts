import { expect, test, vi } from 'vitest'
import { Outbox } from '../../../src/kernel/outbox.ts'
import { call, callWith, fetchRaw } from '../../support/http.ts'
import { PRICED } from '../../support/scope-with-remote-tools.ts'
import { entriesOf, freshScope, stubOf } from '../../support/scopes.ts'

const CHAT = '/v1/openai/chat/completions'
const MAIL = { type: 'function', function: { name: 'send_mail', parameters: { type: 'object' } } }
const body = (content: string, more: object = {}) => ({ model: 'm', messages: [{ role: 'user', content }], tools: [MAIL], ...more })
const ask = (scope: string, content: string) => call(CHAT, { json: body(content), headers: { 'x-reflex-scope': scope } })
const choiceOf = ({ body: answer }: Awaited<ReturnType<typeof ask>>) => answer.choices[0]

const denying = { deny_tools: ['caller.send_*'] }
test.each([
  ['is not allowed in scope', { tools: [] }],
  ['is refused by the setting deny_tools: caller.send_*', denying],
])('a call that %s is answered to the model, and does not leave', async (why, settings) => {
  const scope = freshScope('answered')
  await stubOf(scope).configure(settings, 'a test')
  const answer = await ask(scope, 'write to ada@example.com')
  expect(choiceOf(answer)).toMatchObject({ finish_reason: 'stop', message: { content: expect.stringContaining(why) } })
  expect(choiceOf(answer).message.tool_calls).toBeUndefined()
  expect(await entriesOf(stubOf(scope), 'model-called')).toHaveLength(2)
  expect(await entriesOf(stubOf(scope), 'effect-started')).toEqual([])
  expect(await replayed(scope, answer)).toMatchObject({ equivalent: true, divergences: [], unknown: [] })
})

async function replayed(scope: string, { headers }: Awaited<ReturnType<typeof ask>>) {
  const at = `/v1/traces/${headers.get('x-reflex-trace')}/replay?scope=${encodeURIComponent(scope)}`
  return (await call(at, { json: { mode: 'pinned' } })).body
}

test('no byte of a refused call is in a stream', async () => {
  const scope = freshScope('answered')
  await stubOf(scope).configure(denying, 'a test')
  const json = body('write to ada@example.com', { stream: true })
  const text = await (await fetchRaw(CHAT, { body: JSON.stringify(json), headers: { 'x-reflex-scope': scope } })).text()
  expect(text).toContain('I write.')
  expect(text).not.toContain('tool_calls')
  expect(text).not.toContain('"ada@example.com"')
})

test('a call that a person must allow passes once after the approval, with the same arguments', async () => {
  const scope = freshScope('answered')
  await stubOf(scope).configure({ anchors: [{ name: 'bosses', match: ['boss@example.com', 'chief@example.com'] }] }, 'a test')
  const refused = await ask(scope, 'write to boss@example.com')
  const [, id] = /waits for the approval ([\w-]+)/.exec(choiceOf(refused).message.content) ?? []
  expect(id).toBeDefined()
  expect(await replayed(scope, refused)).toMatchObject({ divergences: [], unknown: [{ kind: 'approval' }] })
  expect(await call(`/v1/approvals/${id}/approve`, { json: {} })).toMatchObject({ status: 200 })
  await expect.poll(() => entriesOf(stubOf(scope), 'approval-decided' as never)).toHaveLength(1)
  expect(choiceOf(await ask(scope, 'write to chief@example.com')).finish_reason).toBe('stop')
  const passed = await ask(scope, 'write to boss@example.com')
  expect(choiceOf(passed).message.tool_calls).toMatchObject([{ function: { name: 'send_mail' } }])
  expect(choiceOf(await ask(scope, 'write to boss@example.com')).finish_reason).toBe('stop')
})

test('a question that an answer names can be answered at once, however slow D1 is', async () => {
  const scope = freshScope('answered')
  await stubOf(scope).configure({ anchors: [{ name: 'bosses', match: ['boss@example.com'] }] }, 'a test')
  const push = Reflect.get(Outbox.prototype, 'push')
  const slow = vi.spyOn(Outbox.prototype, 'push').mockImplementation(async function (this: Outbox, topic) {
    await scheduler.wait(500)
    return push.call(this, topic)
  })
  const refused = await ask(scope, 'write to boss@example.com')
  slow.mockRestore()
  const [, id] = /waits for the approval ([\w-]+)/.exec(choiceOf(refused).message.content) ?? []
  expect(await call(`/v1/approvals/${id}/reject`, { json: {} })).toMatchObject({ status: 200 })
})

test('a budget that is spent reads as a quota of the provider', async () => {
  const scope = freshScope('answered')
  await stubOf(scope).configure({ token_budget: { tokens: 1, per: 'day' } }, 'a test')
  expect(await ask(scope, 'hello')).toMatchObject({ status: 200 })
  const spent = await ask(scope, 'hello')
  expect(spent).toMatchObject({ status: 429, body: { error: { type: 'insufficient_quota' } } })
  expect(Number(spent.headers.get('Retry-After'))).toBeGreaterThan(0)
})

test('a budget in money that refuses reads as a quota, too', async () => {
  const scope = freshScope(PRICED)
  await stubOf(scope).configure({ budget: { usd_per_event: 0.0001, over: 'refuse' } }, 'a test')
  const spent = await ask(scope, 'hello')
  expect(spent).toMatchObject({ status: 429, body: { error: { type: 'insufficient_quota' } } })
  expect(spent.body.error.message).toContain('per event is the limit')
})

test('a model that hears of a refusal may spend no more than the budget', async () => {
  const scope = freshScope('answered')
  await stubOf(scope).configure({ ...denying, token_budget: { tokens: 1, per: 'day' } }, 'a test')
  expect(await ask(scope, 'write to ada@example.com')).toMatchObject({ status: 429 })
  expect(await entriesOf(stubOf(scope), 'model-called')).toHaveLength(1)
})

test('a key of a provider is refused where the deployment passes none on, and is in no log where it does', async () => {
  const scope = freshScope('answered')
  const headers = { 'x-reflex-scope': scope, 'x-reflex-provider-key': 'sk-of-the-caller' }
  expect(await call(CHAT, { json: body('hello'), headers })).toMatchObject({
    status: 403,
    body: { error: { message: expect.any(String) } },
  })
})

test('a scope that cannot record fails the request, unless the deployment passes requests without tools', async () => {
  const away = { getByName: () => ({ answerModel: () => Promise.reject(new Error('the scope is away')) }) }
  const json = { model: 'm', messages: [{ role: 'user', content: 'hello' }] }
  expect(await callWith({ SCOPE: away }, CHAT, { json })).toMatchObject({ status: 500, body: { error: { type: 'server_error' } } })
  const passing = { SCOPE: away, REFLEX_UNRECORDED: 'pass', REFLEX_MODEL: 'offline' }
  const passed = await callWith(passing, CHAT, { json })
  expect(passed).toMatchObject({ status: 200, body: { choices: [{ message: { content: expect.stringContaining('hello') } }] } })
  expect(passed.headers.get('x-reflex-unrecorded')).toBe('true')
  expect(await callWith(passing, CHAT, { json: { ...json, tools: [MAIL] } })).toMatchObject({ status: 500 })
})
