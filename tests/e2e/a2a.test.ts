import { ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, type Client } from '@a2a-js/sdk/client'
import { type Message, type Part, Role, type SendMessageRequest, type Task, TaskState } from '@a2a-js/sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startServer, type LocalServer } from '../../cli/lib/local-server.ts'
import { ADMIN_KEY, ask, temporaryState } from './api.ts'

const state = await temporaryState()
const SCOPE = 'chat/a2a'
let server: LocalServer
let client: Client

beforeAll(async () => {
  server = await startServer({ persist_to: state.directory, migrated: true, vars: { REFLEX_ADMIN_KEY: ADMIN_KEY } })
  const body = { name: 'another agent', roles: ['operator'], scopes: ['chat/*'] }
  const { key } = await ask<{ key: string }>(server.url, '/v1/keys', { body })
  const withKey: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers)
    headers.set('Authorization', `Bearer ${key}`)
    return fetch(input, { ...init, headers })
  }
  const transports = [new JsonRpcTransportFactory({ fetchImpl: withKey })]
  const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports }))
  client = await factory.createFromUrl(server.url, `/.well-known/agent-card.json?scope=${encodeURIComponent(SCOPE)}`)
})
afterAll(async () => {
  await server?.stop()
  await state.remove()
})

const part = (value: string): Part => ({ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: 'text/plain' })
const said = (words: string, messageId: string = crypto.randomUUID()): Message => ({
  messageId,
  contextId: '',
  taskId: '',
  role: Role.ROLE_USER,
  parts: [part(words)],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
})
const request = (message: Message): SendMessageRequest => ({ tenant: '', message, configuration: undefined, metadata: undefined })
const textsOf = ({ artifacts }: Task): string[] =>
  artifacts.flatMap(({ parts }) => parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])))

test('the official client finds the agent, sends a message once, and gets its task with the answer', async () => {
  const message = said('Is anybody there?')
  const task = (await client.sendMessage(request(message))) as Task
  expect(task).toMatchObject({ id: message.messageId, contextId: SCOPE, status: { state: TaskState.TASK_STATE_COMPLETED } })
  expect(textsOf(task)).toEqual([expect.stringContaining('Is anybody there?')])
  expect(await client.sendMessage(request(message))).toEqual(task)
  expect(await client.getTask({ tenant: '', id: task.id })).toEqual(task)
  const { counters } = await ask<{ counters: { accepted: number } }>(server.url, `/v1/scopes/${encodeURIComponent(SCOPE)}`)
  expect(counters.accepted).toBe(1)
})

test('the official client follows a task as it is worked on', async () => {
  const kinds: string[] = []
  let last: TaskState | undefined
  let texts = ''
  for await (const { payload } of client.sendMessageStream(request(said('And now as a stream?')))) {
    kinds.push(payload?.$case ?? '')
    if (payload?.$case === 'task' || payload?.$case === 'statusUpdate') last = payload.value.status?.state
    texts += JSON.stringify(payload)
  }
  expect(kinds[0]).toBe('task')
  expect(last).toBe(TaskState.TASK_STATE_COMPLETED)
  expect(texts).toContain('And now as a stream?')
})

test('the official client gets the reason of a refusal', async () => {
  await expect(client.getTask({ tenant: '', id: 'none' })).rejects.toThrow('There is no task none')
  await expect(client.sendMessage(request(said('', '')))).rejects.toThrow('messageId')
})
