import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, streamText } from 'ai'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listen } from '../../cli/lib/listen.ts'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { ADMIN_KEY, ask, eventually, scopePath, temporaryState, wholeLog } from './api.ts'
import { gate, scriptedModel, type ScriptedModel } from './scripted-model.ts'

const state = await temporaryState()
let server: LocalServer
let model: ScriptedModel
/** The second part of the answer to «slow» waits for it. */
let rest = gate()
const start = (): Promise<LocalServer> =>
  startServer({ persist_to: state.directory, migrated: true, vars: { REFLEX_ADMIN_KEY: ADMIN_KEY, ...model.vars } })

beforeAll(async () => {
  model = await scriptedModel(async function* (question) {
    if (question === 'write to three') {
      for (const name of ['ann', 'bob', 'cy']) yield { tool: 'send_mail', input: { to: `${name}@boss.example` } }
      return
    }
    yield `You said ${question}`
    if (!question.includes('slow')) return
    await rest.opened
    yield ', slowly'
  })
  server = await start()
})
afterAll(async () => {
  rest.open()
  await server?.stop()
  model.stop()
  await state.remove()
})

const chat = (body: object, headers: Record<string, string>) =>
  fetch(`${server.url}/v1/openai/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'slow' }], ...body }),
  })
/** A stream of which the first part has arrived. */
async function begun(scope: string) {
  const response = await chat({ stream: true }, { 'x-reflex-scope': scope })
  const reader = response.body?.getReader()
  await reader?.read()
  return { trace: response.headers.get('x-reflex-trace'), reader }
}
const endOf = (scope: string, status: string) =>
  eventually(async () => {
    const log = await wholeLog(server.url, scope)
    return log.find((entry) => entry['kind'] === 'turn-ended' && entry['status'] === status)
  }, `a turn has ended as ${status}`)

test('the AI SDK gets answers and streams by a changed base URL alone', async () => {
  const provider = createOpenAICompatible({ name: 'provider', baseURL: `${server.url}/v1/openai`, apiKey: ADMIN_KEY })
  const { text, response } = await generateText({ model: provider('gpt-5-mini'), prompt: 'hello' })
  expect(text).toBe('You said hello')
  const trace = await ask<{ spans: unknown[] }>(
    server.url,
    `/v1/traces/${response.headers?.['x-reflex-trace']}?scope=${encodeURIComponent('key/admin')}`,
  )
  expect(JSON.stringify(trace)).toContain('model.asked')
  const streamed = streamText({ model: provider('gpt-5-mini'), prompt: 'again' })
  expect(await streamed.text).toBe('You said again')
})

test('a server that is killed in the middle of a stream leaves a trace that says so', async () => {
  const { trace, reader } = await begun('e2e/dies')
  await server.kill9()
  await reader?.cancel().catch(() => undefined)
  rest.open()
  server = await start()
  expect(await endOf('e2e/dies', 'lost')).toMatchObject({ trace_id: trace })
  rest = gate()
})

test('a caller that leaves while the model is silent leaves a trace that says so', async () => {
  const { trace, reader } = await begun('e2e/left')
  await reader?.cancel()
  expect(await endOf('e2e/left', 'cancelled')).toMatchObject({ trace_id: trace, error: 'the caller left in the middle of the answer' })
  rest.open()
  rest = gate()
})

test('the model hears of a refused call with the output of another that has left', async () => {
  const asked: { messages: { role: string; content: string; tool_calls?: { function: { name: string } }[] }[] }[] = []
  const callOf = (name: string) => ({ id: `of-${name}`, type: 'function', function: { name, arguments: '{}' } })
  const provider = await listen(({ body }) => {
    asked.push(JSON.parse(body))
    const message =
      asked.length === 1
        ? { role: 'assistant', content: null, tool_calls: [callOf('look'), callOf('remove')] }
        : { role: 'assistant', content: 'I looked.' }
    const choices = [{ index: 0, message, finish_reason: asked.length === 1 ? 'tool_calls' : 'stop' }]
    return { status: 200, body: { id: 'x', object: 'chat.completion', created: 0, model: 'm', choices } }
  })
  const own = await temporaryState()
  const vars = { ...model.vars, REFLEX_ADMIN_KEY: ADMIN_KEY, OPENAI_COMPATIBLE_BASE_URL: `http://${provider.host}/v1` }
  const other = await startServer({ persist_to: own.directory, migrated: true, vars })
  await ask(other.url, scopePath('e2e/mixed'), { method: 'PATCH', body: { deny_tools: ['caller.remove'] } })
  const tools = ['look', 'remove'].map((name) => ({ type: 'function', function: { name, parameters: { type: 'object' } } }))
  const user = { role: 'user', content: 'look, and remove' }
  const chatWith = async (messages: object[]) => {
    const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', 'x-reflex-scope': 'e2e/mixed' }
    const body = JSON.stringify({ model: 'm', messages, tools })
    const response = await fetch(`${other.url}/v1/openai/chat/completions`, { method: 'POST', headers, body })
    const { choices } = (await response.json()) as {
      choices: { message: { content: string; tool_calls: { id: string; function: object }[] } }[]
    }
    return { trace: response.headers.get('x-reflex-trace'), message: choices[0]?.message }
  }
  const { message: first } = await chatWith([user])
  expect(first?.tool_calls).toMatchObject([{ function: { name: 'look' } }])
  const output = { role: 'tool', tool_call_id: first?.tool_calls[0]?.id, content: 'a disk' }
  const { trace, message: second } = await chatWith([user, first ?? {}, output])
  expect(second?.content).toBe('I looked.')
  expect(asked[1]?.messages[1]?.tool_calls?.map((call) => call.function.name)).toEqual(['look', 'remove'])
  expect(asked[1]?.messages.slice(2).map(({ content }) => content)).toEqual(['a disk', expect.stringContaining('was not made')])
  const replayed = await ask<{ equivalent: boolean }>(other.url, `/v1/traces/${trace}/replay?scope=e2e%2Fmixed`, {
    body: { mode: 'pinned' },
  })
  expect(replayed).toMatchObject({ equivalent: true })
  await other.stop()
  provider.stop()
  await own.remove()
})

test('a key of the caller is passed on, and is in no log', async () => {
  const keys: string[] = []
  const provider = await listen(({ headers }) => {
    keys.push(String(headers.authorization))
    const choices = [{ index: 0, message: { role: 'assistant', content: 'paid' }, finish_reason: 'stop' }]
    return { status: 200, body: { id: 'x', object: 'chat.completion', created: 0, model: 'm', choices } }
  })
  const own = await temporaryState()
  const vars = {
    REFLEX_ADMIN_KEY: ADMIN_KEY,
    REFLEX_PROVIDER_KEYS: 'pass',
    OPENAI_COMPATIBLE_BASE_URL: `http://${provider.host}/v1`,
    REFLEX_MODEL: 'offline',
  }
  const other = await startServer({ persist_to: own.directory, migrated: true, vars })
  const response = await fetch(`${other.url}/v1/openai/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', 'x-reflex-provider-key': 'sk-of-the-caller' },
    body: JSON.stringify({ model: 'gpt-5-mini', messages: [{ role: 'user', content: 'hello' }], user: 'ada' }),
  })
  expect(await response.json()).toMatchObject({ choices: [{ message: { content: 'paid' } }], model: 'openai-compatible/gpt-5-mini' })
  expect(keys).toEqual(['Bearer sk-of-the-caller'])
  expect(JSON.stringify(await wholeLog(other.url, 'user/ada'))).not.toContain('sk-of-the-caller')
  await other.stop()
  provider.stop()
  await own.remove()
})

test('an agent asks the model less on its second day', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['examples/one-url/index.ts', '--requests', '750', '--json'])
  const { calls_per_100, decided_by } = JSON.parse(stdout) as { calls_per_100: number[]; decided_by: string }
  expect(calls_per_100[0]).toBe(100)
  expect(calls_per_100.at(-1)).toBeLessThan(50)
  expect(decided_by).toMatch(/^reflex:.+@\d+$/)
})

test('the calls of a message that a person must allow are one question, and each passes once after the approval', async () => {
  const scope = 'e2e/three-mails'
  const anchors = [{ name: 'bosses', match: ['*@boss.example'] }]
  await ask(server.url, scopePath(scope), { method: 'PATCH', body: { anchors } })
  const tools = [{ type: 'function', function: { name: 'send_mail', parameters: { type: 'object' } } }]
  const say = async () => {
    const response = await chat({ messages: [{ role: 'user', content: 'write to three' }], tools }, { 'x-reflex-scope': scope })
    const { choices } = (await response.json()) as { choices: { message: { content: string; tool_calls?: { function: object }[] } }[] }
    return choices[0]?.message
  }
  const calls = async () => (await say())?.tool_calls?.map(({ function: of }) => of) ?? []
  const waiting = async () => {
    const path = `/v1/approvals?scope=${encodeURIComponent(scope)}&status=pending`
    return (await ask<{ items: { id: string; kind: string; inputs: object }[] }>(server.url, path)).items
  }
  const refused = await say()
  expect(refused?.tool_calls).toBeUndefined()
  const [question, ...more] = await waiting()
  expect(more).toEqual([])
  expect(question).toMatchObject({
    kind: 'calls',
    inputs: { 1: { to: 'ann@boss.example' }, 2: { to: 'bob@boss.example' }, 3: { to: 'cy@boss.example' } },
  })
  expect(refused?.content).toContain(`it waits for the approval ${question?.id}`)
  await ask(server.url, `/v1/approvals/${question?.id}/approve`, { body: { edits: { 2: null } } })
  const ended = async () => {
    const { run } = await ask<{ run: { ended_at: string | null } | null }>(server.url, `/v1/approvals/${question?.id}`)
    return run?.ended_at != null && run
  }
  expect(await eventually(ended, 'the callers may make them')).toMatchObject({
    status: 'ok',
    reason: expect.stringContaining('may make this call once'),
    steps: [{ tool: 'caller.send_mail' }, { tool: 'caller.send_mail' }],
  })
  expect(await calls()).toEqual(
    ['ann', 'cy'].map((name) => ({ name: 'send_mail', arguments: JSON.stringify({ to: `${name}@boss.example` }) })),
  )
  expect(await calls()).toEqual([])
})
