import { describe, expect, test } from 'vitest'
import { askModern, withForms, withTasks } from '../../../support/mcp.ts'
import { call, keyFor, problem, scopePath } from '../../../support/http.ts'
import { crash, entriesOf, freshScope, note, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { behaviours, effectGates, effects } from '../../../support/test-agents.ts'
import { skill, twoSteps } from '../../../support/two-step-skill.ts'

const did = (scope: string) => effects.filter((effect) => effect.scope === scope).map(({ text }) => text)
const nameOf = (id: string): string => id.replaceAll('.', '__')
const asked = { what: 'x', reflex_why: 'do it twice' }
const needing = (more: object = {}) => skill({ policy: { allow_roles: ['publisher'], needs_approval_if: ['true'], ...more } })
const told = (result: { content: [{ text: string }] }) => JSON.parse(result.content[0].text) as Record<string, unknown>

describe('the version 2026-07-28', () => {
  test('is discovered without a handshake, with its extensions and how long the answer is good', async () => {
    const scope = freshScope()
    const { status, body } = await askModern(scope, 'server/discover')
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        result: {
          resultType: 'complete',
          supportedVersions: ['2026-07-28'],
          capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
          instructions: expect.stringContaining(scope),
          ttlMs: expect.any(Number),
          cacheScope: 'private',
        },
      },
    })
  })

  test('lists the tools in the order of their ids, and how long the list is good', async () => {
    const scope = freshScope()
    const project = crypto.randomUUID()
    await call(scopePath(scope), { method: 'PATCH', json: { project } })
    const ids = [await skill({ compat: { project } }), await skill({ compat: { project } }), await skill({ compat: { project } })]
    const { body } = await askModern(scope, 'tools/list')
    expect(body.result.tools.map(({ name }: { name: string }) => name)).toEqual(ids.toSorted().map(nameOf))
    expect(body.result).toMatchObject({ resultType: 'complete', ttlMs: 5000, cacheScope: 'private' })
  })

  test('runs a call in the trace of its metadata', async () => {
    const scope = freshScope()
    const trace_id = crypto.randomUUID().replaceAll('-', '')
    const _meta = { traceparent: `00-${trace_id}-00f067aa0ba902b7-01` }
    const { body } = await askModern(scope, 'tools/call', { name: nameOf(await skill()), arguments: asked, _meta })
    expect(body.result).toMatchObject({ resultType: 'complete', isError: false, structuredContent: { status: 'ok', trace_id } })
    expect(await entriesOf(stubOf(scope), 'call-received')).toMatchObject([{ trace_id, parent_id: '00f067aa0ba902b7' }])
  })

  test.each([
    ['names a version that is not served', { 'io.modelcontextprotocol/protocolVersion': '2031-01-01' }, {}, 400, -32022],
    ['has no header of its method', {}, { 'Mcp-Method': '' }, 400, -32020],
    ['has the header of another tool', {}, { 'Mcp-Name': 'other' }, 400, -32020],
  ])('refuses a message that %s', async (_, _meta, headers, status, code) => {
    const given = { name: 'a', arguments: {}, _meta }
    const version = (_meta as Record<string, string>)['io.modelcontextprotocol/protocolVersion']
    const answer = await askModern(freshScope(), 'tools/call', given, {
      headers: { ...(headers as Record<string, string>), ...(version && { 'MCP-Protocol-Version': version }) },
    })
    expect(answer).toMatchObject({ status, body: { error: { code } } })
  })

  test('has no streams of changes, and no roles of its own', async () => {
    const scope = freshScope()
    const listen = await askModern(scope, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
    expect(listen.body).toMatchObject({ error: { code: -32603 } })
    const given = { name: nameOf(await skill()), arguments: asked }
    expect(await askModern(scope, 'tools/call', given, { key: await keyFor(['viewer']) })).toMatchObject(problem(403))
    expect(await askModern(scope, 'tools/list', {}, { key: await keyFor(['viewer'], ['elsewhere/*']) })).toMatchObject(problem(403))
    expect(did(scope)).toEqual([])
  })
})

describe('a missing input', () => {
  const inputs = [
    { name: 'what', type: 'string', required: true, description: 'the thing' },
    { name: 'count', type: 'integer', required: true },
  ]

  test('is asked of the user by a form, and the retry runs with the answer', async () => {
    const scope = freshScope()
    const name = nameOf(await skill({ signature: { ...twoSteps('x').signature, inputs } }))
    const first = { name, arguments: { reflex_why: 'twice' } }
    const { body } = await askModern(scope, 'tools/call', first, { capabilities: withForms })
    expect(body.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: {
        slots: {
          method: 'elicitation/create',
          params: {
            mode: 'form',
            requestedSchema: {
              properties: { what: { type: 'string', description: expect.stringContaining('the thing') }, count: { type: 'integer' } },
              required: ['what', 'count'],
            },
          },
        },
      },
    })
    const { requestState } = body.result
    const retry = { ...first, requestState, inputResponses: { slots: { action: 'accept', content: { what: 'y', count: 2 } } } }
    const answer = await askModern(scope, 'tools/call', retry, { capabilities: withForms })
    expect(answer.body.result).toMatchObject({ resultType: 'complete', isError: false, structuredContent: { status: 'ok' } })
    expect(did(scope)).toEqual(['first y', 'second y'])
  })

  test.each([
    ['the client has no forms', {}, inputs],
    ['the client opens addresses alone', { elicitation: { url: {} } }, inputs],
    ['one of the inputs is a list', withForms, [...inputs, { name: 'more', type: 'list', required: true }]],
    ['the input is a secret', withForms, [{ name: 'what', type: 'string', required: true, secret: true }]],
    ['the input is a list', withForms, [{ name: 'what', type: 'list', required: true }]],
  ])('is a question in the result where %s', async (_, capabilities, declared) => {
    const scope = freshScope()
    const plan = { ...twoSteps('x').plan, result_map: {} }
    const name = nameOf(await skill({ signature: { ...twoSteps('x').signature, inputs: declared, outputs: [] }, plan }))
    const { body } = await askModern(scope, 'tools/call', { name, arguments: { reflex_why: 'twice' } }, { capabilities })
    expect(body.result).toMatchObject({ resultType: 'complete', isError: true })
    expect(did(scope)).toEqual([])
  })

  test.each([
    ['declines', { slots: { action: 'decline' } }],
    ['answers something else', { slots: { action: 'accept', content: [] } }],
  ])('runs nothing if the user %s', async (_, inputResponses) => {
    const scope = freshScope()
    const name = nameOf(await skill())
    const given = { name, arguments: { reflex_why: 'twice' }, inputResponses }
    const { body } = await askModern(scope, 'tools/call', given, { capabilities: withForms })
    expect(did(scope)).toEqual([])
    expect(body.result?.isError ?? body.result?.resultType === 'input_required').toBe(true)
  })

  test.each(['no json', '{"approval": 7}', '{"more": true}', `{"approval": "${crypto.randomUUID()}"}`])(
    'is not answered with the state %s',
    async (requestState) => {
      const scope = freshScope()
      const given = { name: nameOf(await skill()), arguments: asked, requestState }
      expect(await askModern(scope, 'tools/call', given, { capabilities: withForms })).toMatchObject({ body: { error: { code: -32602 } } })
      expect(did(scope)).toEqual([])
    },
  )
})

describe('an approval', () => {
  const begin = async (scope: string, name: string, key?: string) => {
    const call = { name, arguments: asked }
    const { body } = await askModern(scope, 'tools/call', call, { capabilities: withForms, ...(key && { key }) })
    const answer = (content: object, of = key) => {
      const inputResponses = { approval: { action: 'accept', content } }
      const retry = { ...call, requestState: body.result.requestState, inputResponses }
      return askModern(scope, 'tools/call', retry, { capabilities: withForms, ...(of && { key: of }) })
    }
    return { result: body.result, answer }
  }

  test('is asked of the user of a key that may decide, and the retry has the result of its run', async () => {
    const scope = freshScope()
    const { result, answer } = await begin(scope, nameOf(await needing()))
    expect(result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { approval: { params: { requestedSchema: { properties: { decision: { enum: ['approve', 'reject', 'wait'] } } } } } },
    })
    expect(did(scope)).toEqual([])
    const { body } = await answer({ decision: 'approve', reason: 'fine' })
    expect(body.result).toMatchObject({ isError: false, structuredContent: { status: 'ok', outputs: { done: 'x' } } })
    expect(did(scope)).toEqual(['first x', 'second x'])
    expect((await answer({ decision: 'approve' })).body.result).toMatchObject({ isError: false })
    expect(did(scope)).toHaveLength(2)
  })

  test('has a field for each simple input, and runs with what was written there', async () => {
    const scope = freshScope()
    const { result, answer } = await begin(scope, nameOf(await needing()))
    expect(result.inputRequests.approval.params.requestedSchema.properties).toMatchObject({ set_what: { type: 'string', default: 'x' } })
    const { body } = await answer({ decision: 'approve', set_what: 'y' })
    expect(body.result).toMatchObject({ isError: false, structuredContent: { status: 'ok', outputs: { done: 'y' } } })
    expect(did(scope)).toEqual(['first y', 'second y'])
  })

  test('that is rejected runs nothing', async () => {
    const scope = freshScope()
    const { answer } = await begin(scope, nameOf(await needing()))
    const { body } = await answer({ decision: 'reject', reason: 'not now' })
    expect({ told: told(body.result), isError: body.result.isError }).toMatchObject({
      isError: true,
      told: { status: 'rejected', reason: 'not now' },
    })
    expect(did(scope)).toEqual([])
  })

  test('is not given by the key that asked, and waits for another one', async () => {
    const scope = freshScope()
    const name = nameOf(await needing())
    const publisher = await keyFor(['publisher'])
    const { result, answer } = await begin(scope, name, publisher)
    expect(result.inputRequests.approval.params.requestedSchema).toEqual({ type: 'object', properties: {} })
    expect(await answer({ decision: 'approve' })).toMatchObject(problem(403))
    const { body } = await answer({})
    expect(told(body.result)).toMatchObject({ status: 'needs_approval', approval: { role: 'operator' } })
    const { approval } = told(body.result) as { approval: { id: string } }
    expect(await answer({}, await keyFor(['publisher'], ['*'], 'another'))).toMatchObject({ body: { error: { code: -32602 } } })
    await call(`/v1/approvals/${approval.id}/approve`, { json: {} })
    expect((await answer({})).body.result).toMatchObject({ isError: false, structuredContent: { status: 'ok' } })
    const operator = await keyFor(['operator'])
    const own = await begin(scope, name, operator)
    expect(own.result.inputRequests.approval.params.requestedSchema.properties.decision.enum).toEqual(['reject', 'wait'])
    expect(await own.answer({ decision: 'approve' })).toMatchObject(problem(403))
  })
})

describe('a task', () => {
  const capabilities = { ...withForms, ...withTasks }
  const of = (scope: string, method: string, taskId: string, more: object = {}, key?: string) =>
    askModern(scope, method, { taskId, ...more }, { capabilities, ...(key && { key }) })
  const completed = (scope: string, taskId: string) =>
    until(async () => (await of(scope, 'tasks/get', taskId)).body.result.status === 'completed', 'the task is completed')

  test('stands for an approval, asks for it, and ends with the result of its run', async () => {
    const scope = freshScope()
    const { body } = await askModern(scope, 'tools/call', { name: nameOf(await needing()), arguments: asked }, { capabilities })
    expect(body.result).toMatchObject({
      resultType: 'task',
      taskId: expect.stringMatching(/^approval:/),
      status: 'input_required',
      ttlMs: expect.any(Number),
    })
    const { taskId } = body.result
    expect((await of(scope, 'tasks/get', taskId)).body.result).toMatchObject({
      status: 'input_required',
      inputRequests: { approval: { method: 'elicitation/create' } },
    })
    const inputResponses = { approval: { action: 'accept', content: { decision: 'approve' } } }
    expect((await of(scope, 'tasks/update', taskId, { inputResponses })).body.result).toMatchObject({ resultType: 'complete' })
    await completed(scope, taskId)
    expect((await of(scope, 'tasks/get', taskId)).body.result).toMatchObject({
      resultType: 'complete',
      taskId,
      result: { isError: false, structuredContent: { status: 'ok', outputs: { done: 'x' } } },
    })
    expect(did(scope)).toEqual(['first x', 'second x'])
  })

  test('asks about each call of a turn with a box and its arguments, and makes those that stay', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ anchors: [{ name: 'the vault', match: ['*vault*'] }] }, 'ops')
    behaviours.set(scope, async (_, deps) => {
      for (const text of ['open the vault', 'empty the vault', 'close the vault']) await deps.call('act', { text }).catch(() => {})
      return null
    })
    await sendAndSettle(stubOf(scope), note(scope, 'go'))
    const waiting = async () => (await call(`/v1/approvals?scope=${encodeURIComponent(scope)}`)).body.items[0]
    const taskId = `approval:${(await until(waiting, 'a person is asked')).id}`
    const { inputRequests } = (await of(scope, 'tasks/get', taskId)).body.result
    const { message, requestedSchema } = inputRequests.approval.params
    expect(message).toContain('3 calls of one turn need an approval')
    expect(requestedSchema.required).toEqual(['decision'])
    expect(requestedSchema.properties).toMatchObject({
      make_1: { type: 'boolean', default: true, title: 'Make call 1: act', description: '{"text":"open the vault"}' },
      set_1_text: { type: 'string', default: 'open the vault' },
      make_2: { type: 'boolean' },
      make_3: { type: 'boolean' },
      set_3_text: { type: 'string', default: 'close the vault' },
    })
    const content = { decision: 'approve', make_1: true, set_1_text: 'open the vault', make_2: false, set_3_text: 'close the vault well' }
    await of(scope, 'tasks/update', taskId, { inputResponses: { approval: { action: 'accept', content } } })
    await completed(scope, taskId)
    expect(did(scope)).toEqual(['open the vault', 'close the vault well'])
    const { edits } = await waiting()
    expect(edits).toEqual({ 2: null, 3: { text: 'close the vault well' } })
  })

  test('that is cancelled withdraws its approval', async () => {
    const scope = freshScope()
    const key = await keyFor(['publisher'])
    const given = { name: nameOf(await needing()), arguments: asked }
    const { taskId, status } = (await askModern(scope, 'tools/call', given, { capabilities, key })).body.result
    expect(status).toBe('working')
    expect((await of(scope, 'tasks/cancel', taskId, {}, key)).body.result).toMatchObject({ resultType: 'complete' })
    const { body } = await of(scope, 'tasks/get', taskId, {}, key)
    expect(told(body.result.result)).toMatchObject({ status: 'rejected' })
    expect(did(scope)).toEqual([])
  })

  test('stands for a run that takes long, and ends with its result', async () => {
    const scope = freshScope()
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    const { body } = await askModern(scope, 'tools/call', { name: nameOf(await skill()), arguments: asked }, { capabilities })
    const { taskId } = body.result
    expect(body.result).toMatchObject({ resultType: 'task', status: 'working', taskId: expect.stringMatching(/^call:/) })
    expect((await of(scope, 'tasks/get', taskId)).body.result).toMatchObject({ status: 'working' })
    gate.resolve()
    await completed(scope, taskId)
    expect((await of(scope, 'tasks/get', taskId)).body.result.result).toMatchObject({ isError: false, structuredContent: { status: 'ok' } })
  })

  test('outlives its scope, whose run it is', async () => {
    const scope = freshScope()
    effectGates.set(scope, new Promise(() => {}))
    const { body } = await askModern(scope, 'tools/call', { name: nameOf(await skill()), arguments: asked }, { capabilities })
    const { taskId } = body.result
    effectGates.delete(scope)
    await crash(scope)
    await completed(scope, taskId)
    // The tool may have acted when the scope died, and has no key that would tell.
    expect((await of(scope, 'tasks/get', taskId)).body.result.result).toMatchObject({
      isError: true,
      structuredContent: { status: 'unknown' },
    })
  })

  test.each(['called', 'approved'])('that is cancelled stops its run, which was %s, and says how it ended', async (begun) => {
    const scope = freshScope()
    const steps = [{ tool: 'act', args: { text: 'hang on {{what}}' }, timeout_ms: 60_000 }]
    const plan = { ...twoSteps('x').plan, budget: { max_cost_usd: 1, max_latency_ms: 60_000 }, steps }
    const policy = { allow_roles: ['publisher'], ...(begun === 'approved' && { needs_approval_if: ['true'] }) }
    const name = nameOf(await skill({ plan, policy }))
    const { body } = await askModern(scope, 'tools/call', { name, arguments: asked }, { capabilities })
    const { taskId } = body.result
    const inputResponses = { approval: { action: 'accept', content: { decision: 'approve' } } }
    if (begun === 'approved') await of(scope, 'tasks/update', taskId, { inputResponses })
    await until(async () => (await entriesOf(stubOf(scope), 'effect-started')).length > 0, 'its step runs')
    await of(scope, 'tasks/cancel', taskId)
    await completed(scope, taskId)
    const { result } = (await of(scope, 'tasks/get', taskId)).body
    expect(result.result).toMatchObject({ isError: true })
    expect(JSON.stringify(result.result)).toContain('cancelled')
  })

  test.each(['tasks/get', 'tasks/update', 'tasks/cancel'])('that there is not is unknown to %s', async (method) => {
    const scope = freshScope()
    for (const taskId of [`call:${crypto.randomUUID()}`, `approval:${crypto.randomUUID()}`, 'call:x', '', "call:' OR 1=1"])
      expect(await of(scope, method, taskId, { inputResponses: {} })).toMatchObject({ body: { error: { code: expect.any(Number) } } })
    expect((await askModern(scope, method, { taskId: `call:${crypto.randomUUID()}`, inputResponses: {} })).body).toMatchObject({
      error: { code: -32021 },
    })
    const viewer = await keyFor(['viewer'])
    expect(await of(scope, method, `call:${crypto.randomUUID()}`, { inputResponses: {} }, viewer)).toMatchObject(problem(403))
  })

  test.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    'are not for a client that does not declare them, whatever it sends to %s',
    async (method) => {
      for (const params of [{}, { taskId: 'x' }, { taskId: 7 }])
        expect((await askModern(freshScope(), method, params)).body).toMatchObject({ error: { code: -32021 } })
    },
  )

  test('of one scope is unknown in another', async () => {
    const scope = freshScope()
    const { body } = await askModern(scope, 'tools/call', { name: nameOf(await needing()), arguments: asked }, { capabilities })
    expect((await of(freshScope(), 'tasks/get', body.result.taskId)).body).toMatchObject({ error: { code: -32602 } })
  })
})
