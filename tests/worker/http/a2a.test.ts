import { describe, expect, test } from 'vitest'
import { call, fetchRaw, keyFor, problem, scopePath, type Call } from '../../support/http.ts'
import { entriesOf, freshScope, stubOf, until } from '../../support/scopes.ts'
import { ask as askModel, behaviours, effects } from '../../support/test-agents.ts'
import { skill, twoSteps } from '../../support/two-step-skill.ts'

const did = (scope: string) => effects.filter((effect) => effect.scope === scope).map(({ text }) => text)
const text = (words: string, more: object = {}) => ({
  messageId: crypto.randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text: words }],
  ...more,
})
const data = (value: unknown, more: object = {}) => ({ ...text('', more), parts: [{ data: value }] })
const ask = (scope: string, method: string, params: unknown = {}, more: Call = {}) =>
  call(scopePath(scope, '/a2a'), {
    json: { jsonrpc: '2.0', id: 1, method, params },
    ...more,
    headers: { 'A2A-Version': '1.0', ...more.headers },
  })
const send = async (scope: string, message: object, more: Call = {}) =>
  (await ask(scope, 'SendMessage', { message }, more)).body.result.task
const get = async (scope: string, id: string) => (await ask(scope, 'GetTask', { id })).body.result
/** The responses of a stream. */
async function stream(scope: string, method: string, params: unknown) {
  const response = await fetchRaw(scopePath(scope, '/a2a'), { json: { jsonrpc: '2.0', id: 's', method, params } })
  expect(response.headers.get('Content-Type')).toBe('text/event-stream')
  const frames = (await response.text()).split('\n\n').filter((frame) => frame !== '')
  return frames.map((frame) => JSON.parse(frame.replace(/^data: /, '')).result as Record<string, { status?: { state: string } }>)
}

describe('the card', () => {
  test('says where the agent of a scope is, and that it needs a key, to anybody', async () => {
    const answer = await call('/.well-known/agent-card.json?scope=team-a%2Fweb', { key: null })
    expect(answer).toMatchObject({
      status: 200,
      body: {
        supportedInterfaces: [
          { url: 'https://reflex.test/v1/scopes/team-a%2Fweb/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        ],
        capabilities: { streaming: true, pushNotifications: false, extendedAgentCard: true },
        securitySchemes: { key: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
        securityRequirements: [{ schemes: { key: {} } }],
        skills: [{ id: 'events' }],
      },
    })
    expect((await call('/.well-known/agent-card.json', { key: null })).body.supportedInterfaces[0].url).toContain('/v1/scopes/default/a2a')
    expect(await call('/.well-known/agent-card.json?scope=no%20scope', { key: null })).toMatchObject(problem(400))
  })

  test('for a key lists the skills of the scope', async () => {
    const scope = freshScope()
    const project = crypto.randomUUID()
    await call(scopePath(scope), { method: 'PATCH', json: { project } })
    const id = await skill({ compat: { project } })
    expect((await ask(scope, 'GetExtendedAgentCard')).body.result.skills).toMatchObject([{ id, description: 'Does it twice' }])
  })
})

describe('a message', () => {
  test('is an event, and its task has the outcome', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_, deps) => {
      deps.reply('hello back')
      return { seen: 1 }
    })
    const message = text('hello')
    const task = await send(scope, message)
    expect(task).toMatchObject({
      id: message.messageId,
      contextId: scope,
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{ parts: [{ text: 'hello back' }] }, { artifactId: 'result', parts: [{ data: { seen: 1 } }] }],
    })
    expect(await get(scope, message.messageId)).toEqual(task)
    const { body } = await call(scopePath(scope, `/events/${message.messageId}`))
    expect(body).toMatchObject({ event: { type: 'ws.message', content: 'hello', source: 'admin' }, status: 'completed' })
  })

  test('that is sent again is dropped, and answers with the same task', async () => {
    const scope = freshScope()
    let turns = 0
    behaviours.set(scope, async () => (turns += 1))
    const message = text('once')
    const first = await send(scope, message)
    expect(await Promise.all([send(scope, message), send(scope, { ...message, parts: [{ text: 'another' }] })])).toEqual([first, first])
    expect(turns).toBe(1)
    expect(await entriesOf(stubOf(scope), 'event-accepted')).toHaveLength(1)
  })

  test('with the data of an event is that event', async () => {
    const scope = freshScope()
    const message = data({ type: 'test.note', text: 'noise' })
    expect(await send(scope, message)).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED' },
      metadata: { 'reflex/event_type': 'test.note' },
    })
    const { body } = await call(scopePath(scope, `/events/${message.messageId}`))
    expect(body).toMatchObject({ event: { type: 'test.note', text: 'noise' }, status: 'ignored' })
  })

  test('joins the trace of the request', async () => {
    const scope = freshScope()
    const trace_id = crypto.randomUUID().replaceAll('-', '')
    const task = await send(scope, text('x'), { headers: { traceparent: `00-${trace_id}-00f067aa0ba902b7-01` } })
    expect(task.metadata['reflex/trace_id']).toBe(trace_id)
  })

  test.each([
    ['no message', {}],
    ['no id', { message: { ...text('x'), messageId: '' } }],
    ['an id with control characters', { message: { ...text('x'), messageId: 'a\u0000b' } }],
    ['an id that is too long', { message: { ...text('x'), messageId: 'x'.repeat(129) } }],
    ['no parts', { message: { ...text('x'), parts: [] } }],
    ['a file', { message: { ...text('x'), parts: [{ url: 'https://example.com/a' }] } }],
    ['two events', { message: { ...text('x'), parts: [{ data: {} }, { data: {} }] } }],
    ['an unknown type of event', { message: data({ type: 'no.such' }) }],
    ['an invalid event', { message: data({ type: 'test.note', text: 7 }) }],
    ['an event for another scope', { message: data({ type: 'test.note', text: 'x', scope: 'test/other' }) }],
    ['another context', { message: text('x', { contextId: 'another' }) }],
    ['an unknown task', { message: text('x', { taskId: 'none' }) }],
  ])('with %s is refused', async (_, params) => {
    const scope = freshScope()
    expect((await ask(scope, 'SendMessage', params)).body.error).toMatchObject({ code: expect.any(Number), message: expect.any(String) })
    expect((await call(scopePath(scope))).body.counters.accepted).toBe(0)
  })

  test('of another version, method or form is refused', async () => {
    const scope = freshScope()
    const other = await ask(scope, 'SendMessage', { message: text('x') }, { headers: { 'A2A-Version': '0.3' } })
    expect(other.body.error).toMatchObject({ code: -32009 })
    // As a client of version 0.3 asks.
    expect((await ask(scope, 'message/send')).body.error).toEqual({
      code: -32601,
      message: expect.stringMatching(/no method message\/send: A2A 1.0 has SendMessage, /),
    })
    for (const method of ['GetTask', 'CancelTask', 'SubscribeToTask'])
      expect((await ask(scope, method, {})).body.error).toMatchObject({ code: -32602, message: expect.stringContaining('id is required') })
    expect((await ask(scope, 'GetTask', [])).body.error).toMatchObject({ code: expect.any(Number) })
    for (const verb of ['Create', 'Get', 'Delete'])
      expect((await ask(scope, `${verb}TaskPushNotificationConfig`, { taskId: 'x', id: 'x' })).body.error).toMatchObject({ code: -32003 })
    const { error } = (await ask(scope, 'ListTaskPushNotificationConfigs', { taskId: 'x' })).body
    expect(error).toMatchObject({ code: -32003, message: expect.stringContaining('webhooks') })
  })

  test('needs the roles of the routes that it stands for', async () => {
    const scope = freshScope()
    const { id } = await send(scope, text('x'))
    const [viewer, publisher] = [await keyFor(['viewer']), await keyFor(['publisher'])]
    expect(await ask(scope, 'SendMessage', { message: text('x') }, { key: viewer })).toMatchObject(problem(403))
    expect(await ask(scope, 'SendStreamingMessage', { message: text('x') }, { key: viewer })).toMatchObject(problem(403))
    for (const [method, params] of [
      ['GetTask', { id }],
      ['ListTasks', {}],
      ['SubscribeToTask', { id }],
    ] as const)
      expect(await ask(scope, method, params, { key: publisher })).toMatchObject(problem(403))
    expect(await ask(scope, 'CancelTask', { id }, { key: publisher })).toMatchObject(problem(403))
    expect(await ask(scope, 'SendMessage', { message: text('x') }, { key: publisher })).toMatchObject({ status: 200 })
  })

  test('shows a publisher the tasks of its own messages alone, though it sends the id of another one', async () => {
    const scope = freshScope('chat')
    const theirs = text('my pin?')
    await send(scope, theirs)
    const key = await keyFor(['publisher'])
    for (const [method, message] of [
      ['SendMessage', text('x', { messageId: theirs.messageId })],
      ['SendStreamingMessage', text('x', { messageId: theirs.messageId })],
      ['SendMessage', text('x', { taskId: theirs.messageId })],
    ] as const) {
      const answer = await ask(scope, method, { message }, { key })
      expect(answer).toMatchObject(problem(403))
      expect(answer.text).not.toContain('my pin?')
    }
    const own = text('x')
    expect(await send(scope, own, { key })).toMatchObject({ id: own.messageId })
    expect(await send(scope, own, { key })).toMatchObject({ id: own.messageId, artifacts: expect.any(Array) })
  })
})

describe('a task', () => {
  test('streams its work until it ends', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_, deps) => {
      deps.reply('done')
      return null
    })
    const events = await stream(scope, 'SendStreamingMessage', { message: text('go') })
    expect(events[0]).toMatchObject({ task: { contextId: scope } })
    const last = events.at(-1)
    expect((last?.['statusUpdate'] ?? last?.['task'])?.status?.state).toBe('TASK_STATE_COMPLETED')
    expect(JSON.stringify(events)).toContain('done')
  })

  test('that is being worked on is returned at once if asked so, subscribed to, and cancelled', async () => {
    const scope = freshScope()
    const started = Promise.withResolvers<void>()
    behaviours.set(scope, (_, deps) => {
      started.resolve()
      return new Promise((_resolve, reject) => deps.signal.addEventListener('abort', () => reject(deps.signal.reason as Error)))
    })
    const message = text('long')
    const { body } = await ask(scope, 'SendMessage', { message, configuration: { returnImmediately: true } })
    expect(['TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING']).toContain(body.result.task.status.state)
    await started.promise
    const following = stream(scope, 'SubscribeToTask', { id: message.messageId })
    expect((await ask(scope, 'CancelTask', { id: message.messageId })).body.result).toMatchObject({
      status: { state: 'TASK_STATE_CANCELED' },
    })
    const last = (await following).at(-1)
    expect((last?.['statusUpdate'] ?? last?.['task'])?.status?.state).toBe('TASK_STATE_CANCELED')
    expect((await ask(scope, 'SubscribeToTask', { id: message.messageId })).body.error).toMatchObject({ code: -32004 })
    expect((await ask(scope, 'CancelTask', { id: message.messageId })).body.error).toMatchObject({ code: -32002 })
  })

  test('continues without its stream once the key of that is deleted', async () => {
    const scope = freshScope()
    const { promise, resolve } = Promise.withResolvers<null>()
    behaviours.set(scope, () => promise)
    const { body: key } = await call('/v1/keys', { json: { name: 'peer', roles: ['publisher', 'viewer'], scopes: ['*'] } })
    const message = text('long')
    const json = { jsonrpc: '2.0', id: 's', method: 'SendStreamingMessage', params: { message } }
    const response = await fetchRaw(scopePath(scope, '/a2a'), { json, key: key.key })
    await call(`/v1/keys/${key.id}`, { method: 'DELETE' })
    expect(await response.text()).toContain('The key of this stream was deleted or has expired.')
    resolve(null)
    await until(async () => (await get(scope, message.messageId)).status.state === 'TASK_STATE_COMPLETED', 'the task ends')
  })

  test.each(['GetTask', 'CancelTask', 'SubscribeToTask'])('that there is not is unknown to %s', async (method) => {
    const scope = freshScope()
    const { id } = await send(freshScope(), text('elsewhere'))
    for (const unknown of ['none', '', 'x'.repeat(500), "' OR 1=1", id])
      expect((await ask(scope, method, { id: unknown })).body.error).toMatchObject({ code: expect.any(Number) })
  })

  test('is listed with the others of its scope', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_, deps) => (deps.reply('done'), null))
    const ids = []
    for (const words of ['a', 'b', 'c']) ids.push((await send(scope, text(words))).id)
    await send(freshScope(), text('elsewhere'))
    const list = async (params: object) => (await ask(scope, 'ListTasks', params)).body.result
    await until(async () => (await list({})).tasks.length === 3, 'D1 has the events')
    const first = await list({ pageSize: 2 })
    expect(first.tasks.map(({ id }: { id: string }) => id)).toEqual([ids[2], ids[1]])
    expect((await list({ pageSize: 2, pageToken: first.nextPageToken })).tasks).toMatchObject([{ id: ids[0] }])
    expect((await list({ status: 'TASK_STATE_FAILED' })).tasks ?? []).toEqual([])
    expect((await list({ contextId: 'another' })).tasks ?? []).toEqual([])
    expect(first.tasks[0]).not.toHaveProperty('artifacts')
    expect((await list({ includeArtifacts: true })).tasks).toMatchObject(ids.toReversed().map((id) => ({ id, artifacts: [{}] })))
    expect((await list({ statusTimestampAfter: '2999-01-01T00:00:00Z' })).tasks).toEqual([])
    expect((await list({ statusTimestampAfter: first.tasks[0].status.timestamp })).tasks).toMatchObject([{ id: ids[2] }])
  })

  test.each([
    ['pageToken', 'x'],
    ['pageSize', 'x'],
    ['pageSize', 0],
    ['pageSize', 101],
    ['status', 'DONE'],
    ['statusTimestampAfter', 'yesterday'],
  ])('is not listed by a wrong %s: %j', async (name, value) => {
    expect((await ask(freshScope(), 'ListTasks', { [name]: value })).body.error).toMatchObject({
      code: -32602,
      message: expect.stringContaining(name),
    })
  })

  test('that failed says why', async () => {
    const scope = freshScope()
    await call(scopePath(scope), { method: 'PATCH', json: { retry: { max_attempts: 1 } } })
    behaviours.set(scope, async () => {
      throw new Error('it broke')
    })
    expect(await send(scope, text('x'))).toMatchObject({
      status: { state: 'TASK_STATE_FAILED', message: { parts: [{ text: expect.stringContaining('it broke') }] } },
    })
  })
})

describe('a task that waits for an answer', () => {
  /** The turn's model proposes a skill. */
  const proposes = (scope: string, skill_id: string) =>
    behaviours.set(scope, async (_, deps) => ({ said: await askModel(deps, `propose ${skill_id} twice`) }))
  const needing = () => skill({ policy: { allow_roles: ['agent'], needs_approval_if: ['true'] } })

  test('of a person is decided by a message, with the roles of the key', async () => {
    const scope = freshScope()
    proposes(scope, await needing())
    const { id, status } = await send(scope, text('please'))
    expect(status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: expect.stringContaining('approval') }] },
    })
    expect(did(scope)).toEqual([])
    const approve = data({ decision: 'approve', reason: 'fine' }, { taskId: id })
    expect(await ask(scope, 'SendMessage', { message: approve }, { key: await keyFor(['publisher', 'viewer']) })).toMatchObject(
      problem(403),
    )
    expect(did(scope)).toEqual([])
    const misspelt = data({ decision: 'yes' }, { taskId: id })
    expect((await ask(scope, 'SendMessage', { message: misspelt })).body.error).toMatchObject({ code: -32602 })
    for (const _ of [1, 2]) expect(await send(scope, approve)).toMatchObject({ id, status: { state: 'TASK_STATE_COMPLETED' } })
    expect(did(scope)).toEqual(['first m', 'second m'])
    const reject = data({ decision: 'reject' }, { taskId: id })
    expect((await ask(scope, 'SendMessage', { message: reject })).body.error).toMatchObject({ code: -32004 })
  })

  test('is rejected by a message, or by its cancellation', async () => {
    const scope = freshScope()
    proposes(scope, await needing())
    const first = await send(scope, text('a'))
    expect(await send(scope, data({ decision: 'reject' }, { taskId: first.id }))).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED' },
    })
    const second = await send(scope, text('b'))
    expect(second).toMatchObject({ status: { state: 'TASK_STATE_INPUT_REQUIRED' } })
    expect((await ask(scope, 'CancelTask', { id: second.id })).body.result.status.state).not.toBe('TASK_STATE_INPUT_REQUIRED')
    expect(did(scope)).toEqual([])
  })

  test('for a missing input takes the next message, and stays the same task', async () => {
    const scope = freshScope()
    const { signature } = twoSteps('x')
    const inputs = [...signature.inputs, { name: 'place', type: 'string', required: true }]
    const bindings = { inputs: { place: 'ctx.place' }, outputs: {} }
    proposes(scope, await skill({ signature: { ...signature, inputs, blackboard_bindings: bindings } }))
    const { id, status } = await send(scope, text('please'))
    expect(status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: expect.stringContaining('What is place') }] },
    })
    await call(scopePath(scope), { method: 'PATCH', json: { blackboard: { ctx: { place: 'there' } } } })
    const answer = text('I said where', { taskId: id })
    for (const _ of [1, 2]) expect(await send(scope, answer)).toMatchObject({ id, status: { state: 'TASK_STATE_COMPLETED' } })
    expect(did(scope)).toEqual(['first m', 'second m'])
    expect((await ask(scope, 'SendMessage', { message: text('more', { taskId: id }) })).body.error).toMatchObject({ code: -32004 })
  })
})

describe('what is no message', () => {
  const raw = (scope: string, sent: string) =>
    call(scopePath(scope, '/a2a'), { method: 'POST', body: sent, headers: { 'Content-Type': 'application/json' } })

  test.each([
    ['{', -32_700],
    ['', -32_700],
    ['{"id":1}', -32_600],
    ['[]', -32_600],
    ['{"jsonrpc":"2.0","id":{},"method":"ListTasks"}', -32_600],
    ['{"jsonrpc":"2.0","id":1}', -32_600],
    ['{"jsonrpc":"2.0","method":"ListTasks","params":{}}', -32_600],
  ])('%j has an error of JSON-RPC: %i', async (sent, code) => {
    expect(await raw(freshScope(), sent)).toMatchObject({ status: 200, body: { jsonrpc: '2.0', id: null, error: { code } } })
  })

  test.each(['SendMessage', 'SendStreamingMessage'])('has an invalid part: %s names the parameters', async (method) => {
    const { body } = await ask(freshScope(), method, { message: { ...text('x'), parts: [null] } })
    expect(body.error).toMatchObject({ code: -32_602, message: expect.stringContaining('params') })
  })

  test('has a part that is a file: it is not supported', async () => {
    for (const part of [
      { url: 'https://example.com/a.pdf', mediaType: 'application/pdf' },
      { raw: 'aGk=', filename: 'a.txt' },
    ]) {
      const { body } = await ask(freshScope(), 'SendMessage', { message: { ...text('x'), parts: [{ text: 'x' }, part] } })
      expect(body.error).toMatchObject({ code: -32_005 })
    }
  })
})
