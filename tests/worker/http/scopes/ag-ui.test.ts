import { HttpAgent, type BaseEvent, type RunAgentInput } from '@ag-ui/client'
import { describe, expect, test } from 'vitest'
import { adminKey, call, fetchRaw, keyFor, problem, scopePath, workerFetch } from '../../../support/http.ts'
import { write } from '../../../support/reflex-chain.ts'
import { freshScope, logOf, stubOf } from '../../../support/scopes.ts'
import { ask as askModel, behaviours, effects } from '../../../support/test-agents.ts'
import { skill, twoSteps } from '../../../support/two-step-skill.ts'

const inputOf = (changes: Partial<RunAgentInput> = {}): RunAgentInput => ({
  threadId: 'alice',
  runId: crypto.randomUUID(),
  messages: [{ id: 'm-1', role: 'user', content: 'hello' }],
  tools: [],
  context: [],
  ...changes,
})
const run = async (scope: string, json: unknown, key = adminKey): Promise<BaseEvent[]> => {
  const { status, text } = await call(scopePath(scope, '/ag-ui'), { json, key })
  expect({ status, text }).toMatchObject({ status: 200 })
  return text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6)) as BaseEvent] : []))
}
/** Text that was streamed has more parts, without times. */
const joined = (events: readonly BaseEvent[]): BaseEvent[] => {
  const whole: (BaseEvent & { messageId?: string; delta?: string })[] = []
  for (const event of events) {
    const { timestamp: _, ...text } = event as BaseEvent & { messageId: string; delta: string }
    const last = whole.at(-1)
    const continues = 'delta' in text && last?.type === text.type && last.messageId === text.messageId
    if (continues) last.delta += text.delta
    else whole.push(text.type.startsWith('TEXT_MESSAGE') ? text : event)
  }
  return whole
}
/** The texts of a response as they come. */
async function* deltasOf({ body }: Response): AsyncGenerator<string> {
  let rest = ''
  for await (const text of body!.pipeThrough(new TextDecoderStream())) {
    const lines = `${rest}${text}`.split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.includes('"TEXT_MESSAGE_CONTENT"')) yield (JSON.parse(line.slice(6)) as { delta: string }).delta
  }
}
const ended = (): never => {
  throw new Error('the run ended')
}
const restOf = async (texts: AsyncGenerator<string>): Promise<string[]> => {
  const all: string[] = []
  for await (const text of texts) all.push(text)
  return all
}
const typesOf = (events: readonly BaseEvent[]) => events.map(({ type }): string => type)

describe('a run by AG-UI', () => {
  test('is understood by the official client', async () => {
    const scope = freshScope('chat')
    const agent = new HttpAgent({
      url: `https://reflex.test${scopePath(scope, '/ag-ui')}`,
      headers: { Authorization: `Bearer ${adminKey}` },
      fetch: (url, init) => workerFetch(url, init),
      threadId: 'alice',
      initialMessages: [{ id: 'm-1', role: 'user', content: 'hello' }],
    })
    const { newMessages } = await agent.runAgent()
    expect(newMessages).toMatchObject([{ role: 'assistant', content: expect.stringMatching(/\S/) }])
    expect(agent.state).toMatchObject({ history: expect.any(Array) })
  })

  test('that is sent again gets the same events, and starts no second turn', async () => {
    const scope = freshScope('chat')
    const input = inputOf()
    const first = await run(scope, input)
    expect(typesOf(joined(first))).toEqual([
      'RUN_STARTED',
      'STEP_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'STATE_SNAPSHOT',
      'STEP_FINISHED',
      'RUN_FINISHED',
    ])
    expect(first.at(-1)).toMatchObject({ runId: input.runId, outcome: { type: 'success' } })
    await run(scope, inputOf())
    expect(joined(await run(scope, input))).toEqual(joined(first))
    expect((await logOf(stubOf(scope))).filter(({ kind }) => kind === 'turn-started')).toHaveLength(2)
  })

  test('whose connection is lost continues, and is read from its beginning', async () => {
    const scope = freshScope('chat')
    const input = inputOf()
    const response = await fetchRaw(scopePath(scope, '/ag-ui'), { json: input })
    await response.body?.cancel()
    expect(typesOf(await run(scope, input)).at(-1)).toBe('RUN_FINISHED')
    expect((await stubOf(scope).state()).counters.accepted).toBe(1)
  })

  test('sends text as the model makes it, and the text so far to who joins', async () => {
    const scope = freshScope()
    const gate = Promise.withResolvers<void>()
    behaviours.set(scope, async (_, deps) => {
      for (const delta of ['a', 'b']) deps.stream(delta)
      await gate.promise
      deps.stream('c')
      deps.reply('abcd')
      return null
    })
    const input = inputOf()
    const key = await keyFor(['publisher'])
    const early = deltasOf(await fetchRaw(scopePath(scope, '/ag-ui'), { json: input, key }))
    for (let text = ''; text !== 'ab';) text += (await early.next()).value ?? ended()
    const late = deltasOf(await fetchRaw(scopePath(scope, '/ag-ui'), { json: input, key }))
    expect(await late.next()).toMatchObject({ value: 'ab' })
    const other = deltasOf(await fetchRaw(scopePath(scope, '/ag-ui'), { json: inputOf() }))
    behaviours.delete(scope)
    gate.resolve()
    expect(await restOf(early)).toEqual(['c', 'd'])
    expect(await restOf(late)).toEqual(['c', 'd'])
    expect(await restOf(other)).not.toContain('c')
  })

  test('shows a run that another key began to viewers alone', async () => {
    const scope = freshScope('chat')
    const input = inputOf()
    await run(scope, input)
    expect(await call(scopePath(scope, '/ag-ui'), { json: input, key: await keyFor(['publisher']) })).toMatchObject(problem(403))
    expect(typesOf(await run(scope, input, await keyFor(['publisher', 'viewer'])))).toContain('TEXT_MESSAGE_CONTENT')
  })

  test('shows its work to viewers alone', async () => {
    const scope = freshScope('chat')
    const types = typesOf(await run(scope, inputOf(), await keyFor(['publisher'])))
    expect(types).toContain('TEXT_MESSAGE_CONTENT')
    expect(types).not.toContain('STATE_SNAPSHOT')
  })

  test.each([
    ['approved', { status: 'resolved', payload: { approved: true } }, ['first x', 'second x']],
    ['approved with other inputs', { status: 'resolved', payload: { approved: true, edits: { what: 'y' } } }, ['first y', 'second y']],
    ['rejected', { status: 'resolved', payload: { approved: false, reason: 'not now' } }, []],
    ['left', { status: 'cancelled' }, []],
  ] as const)('ends with an interrupt that is %s by the next run', async (_, answer, done) => {
    const scope = freshScope()
    const id = await skill({ policy: { allow_roles: ['agent'], needs_approval_if: ['true'] } })
    const { id: reflex } = await write(`return { action_type: 'run_skill', skill_id: ${JSON.stringify(id)}, inputs: { what: 'x' } }`)
    await stubOf(scope).configure({ reflexes: [{ id: reflex }], goal_labels: ['twice'] }, 'ops')
    const first = await run(scope, inputOf())
    const { outcome } = first.at(-1) as BaseEvent & { outcome: { type: string; interrupts: { id: string; reason: string }[] } }
    expect(outcome).toMatchObject({ type: 'interrupt', interrupts: [{ reason: 'approval_required', metadata: { skill_id: id } }] })
    const input = inputOf({ messages: [], resume: [{ interruptId: outcome.interrupts[0]?.id ?? '', ...answer }] })
    expect(await call(scopePath(scope, '/ag-ui'), { json: input, key: await keyFor(['publisher']) })).toMatchObject(problem(403))
    const second = await run(scope, input)
    expect(typesOf(second).filter((type) => type === 'TOOL_CALL_RESULT')).toHaveLength(done.length)
    expect(second.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
    expect(effects.filter((effect) => effect.scope === scope).map(({ text }) => text)).toEqual(done)
    expect(await run(scope, input)).toEqual(second)
  })

  test.each([
    ['no message', { messages: [] }],
    ['no text', { messages: [{ id: 'm', role: 'user', content: '  ' }] }],
    ['a run without an id', { runId: '' }],
    ['an id with a control character', { runId: 'a\u0000b' }],
    ['33 answers', { resume: Array.from({ length: 33 }, (_each, place) => ({ interruptId: `i-${place}`, status: 'resolved' })) }],
    ['messages that are no list', { messages: 'hello' }],
  ])('is refused with %s, and leaves nothing', async (_, changes) => {
    const scope = freshScope('chat')
    expect(await call(scopePath(scope, '/ag-ui'), { json: { ...inputOf(), ...changes } })).toMatchObject(problem(400))
    expect(await logOf(stubOf(scope))).toEqual([])
  })

  test('answers no interrupt that the scope does not have, and none for a publisher', async () => {
    const scope = freshScope('chat')
    const json = inputOf({ resume: [{ interruptId: crypto.randomUUID(), status: 'resolved', payload: { approved: true } }] })
    expect(await call(scopePath(scope, '/ag-ui'), { json })).toMatchObject(problem(404))
    expect(await call(scopePath(scope, '/ag-ui'), { json, key: await keyFor(['publisher']) })).toMatchObject(problem(403))
  })

  test('ignores what a scope has no use for in the messages before: activities, and however many', async () => {
    const scope = freshScope('chat')
    const activity = { id: 'a', role: 'activity', activityType: 'PLAN', content: { steps: [] } }
    const before = Array.from({ length: 1500 }, (_, place) => ({ id: `m-${place}`, role: 'user', content: 'x' }))
    const json = {
      ...inputOf(),
      messages: [activity, { id: 'e', role: 'assistant' }, ...before, { id: 'l', role: 'user', content: 'hello' }],
    }
    expect(typesOf(await run(scope, json)).at(-1)).toBe('RUN_FINISHED')
  })
})

describe('the interrupts of a run', () => {
  type Interrupts = BaseEvent & { outcome: { interrupts: { id: string }[] } }
  const interruptsOf = (events: readonly BaseEvent[]) => (events.at(-1) as Interrupts).outcome.interrupts.map(({ id }) => id)
  const done = (scope: string) => effects.filter((effect) => effect.scope === scope).map(({ text }) => text)
  /** A turn that says something, and whose model proposes the skills. */
  const proposes = (scope: string, ids: readonly string[]) =>
    behaviours.set(scope, async (_, deps) => {
      for (const id of ids) await askModel(deps, `propose ${id} twice`)
      deps.reply('I asked')
      return null
    })
  const needing = () => skill({ policy: { allow_roles: ['agent'], needs_approval_if: ['true'] } })
  const asking = () => {
    const { signature } = twoSteps('x')
    return skill({ signature: { ...signature, inputs: [...signature.inputs, { name: 'place', type: 'string', required: true }] } })
  }

  test('are answered together by the official client, which has each text once', async () => {
    const scope = freshScope()
    proposes(scope, [await needing(), await needing()])
    const agent = new HttpAgent({
      url: `https://reflex.test${scopePath(scope, '/ag-ui')}`,
      headers: { Authorization: `Bearer ${adminKey}` },
      fetch: (url, init) => workerFetch(url, init),
      initialMessages: [{ id: 'm-1', role: 'user', content: 'please' }],
    })
    await agent.runAgent()
    behaviours.delete(scope)
    expect(agent.pendingInterrupts).toHaveLength(2)
    const resume = agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'resolved' as const, payload: { approved: true } }))
    const { result } = await agent.runAgent({ resume })
    expect(result).toMatchObject({ answers: [{ status: 'ok' }, { status: 'ok' }] })
    expect(done(scope).toSorted()).toEqual(['first m', 'first m', 'second m', 'second m'])
    expect(agent.messages.flatMap(({ role, content }) => (role === 'assistant' && content !== undefined ? [content] : []))).toEqual([
      'I asked',
    ])
  })

  test('that ask for input take a text, and an answer of another form sends no earlier message again', async () => {
    const scope = freshScope()
    proposes(scope, [await asking()])
    const [interruptId] = interruptsOf(await run(scope, inputOf()))
    const answer = (changes: object) => ({ ...inputOf(), resume: [{ interruptId, status: 'resolved', ...changes }] })
    const accepted = async () => (await stubOf(scope).state()).counters.accepted
    expect(await call(scopePath(scope, '/ag-ui'), { json: answer({ payload: { place: 'there' } }) })).toMatchObject(problem(400))
    expect(await call(scopePath(scope, '/ag-ui'), { json: answer({ interruptId: 'clarify:none', payload: 'x' }) })).toMatchObject(
      problem(404),
    )
    const left = await run(scope, answer({ status: 'cancelled' }))
    expect(typesOf(left)).toEqual(['RUN_STARTED', 'RUN_FINISHED'])
    expect(left.at(-1)).toMatchObject({ outcome: { type: 'success' }, result: { status: 'cancelled' } })
    expect(await accepted()).toBe(1)
    behaviours.delete(scope)
    expect(typesOf(await run(scope, answer({ payload: 'there' }))).at(-1)).toBe('RUN_FINISHED')
    expect(await accepted()).toBe(2)
  })

  test('of both kinds are answered by one run', async () => {
    const scope = freshScope()
    proposes(scope, [await needing(), await asking()])
    const ids = interruptsOf(await run(scope, inputOf()))
    behaviours.delete(scope)
    const resume = ids.map((interruptId) => ({
      interruptId,
      status: 'resolved',
      payload: interruptId.startsWith('clarify:') ? 'there' : { approved: true },
    }))
    const input = { ...inputOf(), resume }
    const events = await run(scope, input)
    expect(typesOf(events).filter((type) => type === 'TOOL_CALL_RESULT')).toHaveLength(2)
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
    expect(done(scope)).toEqual(['first m', 'second m'])
    expect((await stubOf(scope).state()).counters.accepted).toBe(2)
    expect(typesOf(joined(await run(scope, input)))).toEqual(typesOf(joined(events)))
  })
})
