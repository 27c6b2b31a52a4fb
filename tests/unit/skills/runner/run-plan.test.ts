import { describe, expect, test } from 'vitest'
import type { RunResult } from '../../../../src/skills/runner/ports.ts'
import { Retryable, threeSteps, toolsOf, World } from '../run-world.ts'

const KEY = 'once:{{who}}'
const who = { who: 'ann' }
const run = async (world: World, ...rest: Parameters<World['run']>): Promise<RunResult> => {
  const result = await world.run(...rest)
  if (result === 'died') throw new Error('nothing was to die')
  return result
}
const failing = () => {
  throw new Error('no')
}

describe('a plan', () => {
  test('runs its steps one after the other and gives its outputs, its writes and what it cost', async () => {
    const world = new World()
    world.tools = { second: (_, { world }) => world.wait(30).then(() => ({ n: 2 })) }
    const result = await run(
      world,
      threeSteps({ 'plan.steps.0.args': { cost: 0.25 }, 'plan.steps.2.args': { n: '{{work.steps.second.n}}' } }),
    )
    expect(result).toMatchObject({
      status: 'ok',
      reason: null,
      outputs: { answer: 'third' },
      blackboard: { work: { flag: true, answer: 'third' } },
      writes: [{ path: 'work.answer', change: 'added', before: null, after: 'third' }],
      cost_usd: 0.25,
      latency_ms: 30,
      steps: [
        { name: 'first', tool: 'first', status: 'ok', attempts: 1, cost_usd: 0.25 },
        { name: 'second', tool: 'second', duration_ms: 30 },
        { name: 'third', tool: 'third' },
      ],
      compensation: [],
    })
    expect(world.effects).toEqual([
      { tool: 'first', args: { cost: 0.25 }, key: null },
      { tool: 'second', args: {}, key: null },
      { tool: 'third', args: { n: 2 }, key: null },
    ])
    expect(world.log.map(({ kind }) => kind)).toEqual([
      'skill-started',
      'skill-step-ended',
      'skill-step-ended',
      'skill-step-ended',
      'skill-applied',
    ])
  })

  test('skips a step whose guard is false, and fails at one whose guard is broken', async () => {
    const world = new World()
    const skipped = await run(
      world,
      threeSteps({ 'plan.steps.1.guard': '!work.flag', 'plan.steps.2.guard': "work.steps.first.done == 'first'" }),
    )
    expect(skipped).toMatchObject({ status: 'ok', steps: [{ status: 'ok' }, { status: 'skipped', attempts: 0 }, { status: 'ok' }] })
    const broken = await run(new World(), threeSteps({ 'plan.steps.1.guard': 'work.nothing' }))
    expect(broken).toMatchObject({ status: 'partial_failure', reason: 'guard', detail: expect.stringContaining('No such key: nothing') })
  })

  test('undoes what was done, the newest first, when a step fails', async () => {
    const world = new World()
    world.tools = { third: failing }
    const result = await run(world, threeSteps())
    expect(result).toMatchObject({
      status: 'partial_failure',
      reason: 'tool',
      detail: 'no',
      outputs: {},
      writes: [],
      blackboard: { work: { flag: true } },
    })
    expect(result.compensation).toEqual([
      { index: 1, undoes: 'second', tool: 'undo_second', status: 'ok', error: null },
      { index: 0, undoes: 'first', tool: 'undo_first', status: 'ok', error: null },
    ])
    expect(toolsOf(world)).toEqual(['first', 'second', 'undo_second', 'undo_first'])
  })

  test('that did nothing has failed and undoes nothing', async () => {
    const world = new World()
    world.tools = { first: failing }
    const whole = { when: 'partial_failure', tool: 'undo_all', args: {}, timeout_ms: 500 }
    for (const manifest of [threeSteps(), threeSteps({ 'plan.compensation': [whole] })])
      expect(await run(world, manifest)).toMatchObject({ status: 'failed', compensation: [] })
    expect(world.effects).toEqual([])
  })

  test('continues to compensate when one compensation fails or cannot be filled, and reports it', async () => {
    const world = new World()
    world.tools = { third: failing, undo_second: failing }
    const whole = { when: 'partial_failure', tool: 'undo_all', args: { x: '{{work.nothing}}' } }
    const manifest = threeSteps()
    manifest.plan.compensation.push({ ...manifest.plan.compensation[0], ...whole } as never)
    delete manifest.plan.compensation[3]?.step
    expect((await run(world, manifest)).compensation).toEqual([
      { index: 1, undoes: 'second', tool: 'undo_second', status: 'failed', error: 'no' },
      { index: 0, undoes: 'first', tool: 'undo_first', status: 'ok', error: null },
      {
        index: 3,
        undoes: null,
        tool: 'undo_all',
        status: 'failed',
        error: 'args.x: {{work.nothing}} has no value: there is no work.nothing',
      },
    ])
  })

  test('fails at a place that has no value, without calling the tool', async () => {
    const world = new World()
    const result = await run(world, threeSteps({ 'plan.steps.1.args': { x: ['{{work.steps.first.missing}}'] } }))
    expect(result).toMatchObject({
      status: 'partial_failure',
      reason: 'template',
      detail: expect.stringContaining('args.x.0: {{work.steps.first.missing}}'),
    })
    expect(toolsOf(world)).toEqual(['first', 'undo_first'])
  })

  test('undoes all where its result cannot be given', async () => {
    const missing = await run(new World(), threeSteps({ 'plan.result_map.answer': '{{work.steps.third.other}}' }))
    expect(missing).toMatchObject({
      status: 'partial_failure',
      reason: 'result',
      detail: expect.stringContaining('no work.steps.third.other'),
    })
    const wrong = await run(new World(), threeSteps({ 'plan.result_map.answer': 3 }))
    expect(wrong).toMatchObject({ status: 'partial_failure', reason: 'result', detail: 'the output answer is not of type string' })
    expect(wrong.compensation).toHaveLength(3)
  })
})

describe('a compensation', () => {
  const undo = (tool: string, step?: string) => ({ when: 'partial_failure', tool, args: {}, timeout_ms: 500, ...(step ? { step } : {}) })

  test('of one step comes before the ones of older steps, of one step the last that is named first, and of the plan at the end', async () => {
    const world = new World()
    world.tools = { third: failing }
    const entries = [
      undo('plan_1'),
      undo('first_1', 'first'),
      undo('second_1', 'second'),
      undo('first_2', 'first'),
      undo('plan_2'),
      undo('third_1', 'third'),
    ]
    const { compensation } = await run(world, threeSteps({ 'plan.compensation': entries }))
    expect(compensation.map(({ tool, undoes }) => [tool, undoes])).toEqual([
      ['second_1', 'second'],
      ['first_2', 'first'],
      ['first_1', 'first'],
      ['plan_2', null],
      ['plan_1', null],
    ])
  })

  test('is called once, for the time that it names, with the outputs so far, a key of its own and what to hide', async () => {
    const world = new World()
    const seen: unknown[] = []
    world.tools = {
      second: failing,
      undo: (_, { timeout_ms, idempotence_key, hide, secrets }) => {
        seen.push({ timeout_ms, idempotence_key, secrets, hidden: hide('of hush-hush') })
        throw new Retryable('busy')
      },
    }
    const changes = {
      'signature.inputs.0': { name: 'who', type: 'string', secret: true },
      'plan.idempotence_key': 'once',
      'plan.compensation': [{ ...undo('undo', 'first'), args: { was: '{{work.steps.first.done}}' } }],
    }
    const result = await run(world, threeSteps(changes), { inputs: { who: 'hush-hush' } })
    expect(result.compensation).toEqual([{ index: 0, undoes: 'first', tool: 'undo', status: 'failed', error: 'busy' }])
    expect(seen).toEqual([
      { timeout_ms: 500, idempotence_key: 'deploy.container.appservice:once:run-1:undo-0', secrets: [], hidden: 'of [secret]' },
    ])
    expect(world.journal.get('compensation 0')).toMatchObject({
      begun: { phase: 'compensation', index: 0, tool: 'undo', at: 0, idempotence_key: 'deploy.container.appservice:once:run-1:undo-0' },
      end: { status: 'failed', attempts: 1 },
    })
  })
})

describe('the log of a run', () => {
  const head = { run_id: 'run-1', skill_id: 'deploy.container.appservice', version: '1.3.0' }

  test('has its inputs, each step, each compensation and its end', async () => {
    const world = new World()
    world.tools = { second: failing }
    await run(world, threeSteps({ 'plan.steps.0.args': { cost: 0.25 } }), { inputs: { who: 'ann' } })
    const end = { cost_usd: 0, attempts: 1, duration_ms: 0 }
    expect(world.log).toEqual([
      { ...head, kind: 'skill-started', inputs: { who: 'ann' } },
      {
        ...head,
        ...end,
        kind: 'skill-step-ended',
        step: 'first',
        index: 0,
        tool: 'first',
        status: 'ok',
        reason: null,
        error: null,
        output: { done: 'first' },
        cost_usd: 0.25,
      },
      {
        ...head,
        ...end,
        kind: 'skill-step-ended',
        step: 'second',
        index: 1,
        tool: 'second',
        status: 'failed',
        reason: 'tool',
        error: 'no',
        output: null,
      },
      { ...head, kind: 'skill-compensation-ended', index: 0, undoes: 'first', tool: 'undo_first', status: 'ok', error: null },
      {
        ...head,
        kind: 'skill-applied',
        status: 'partial_failure',
        reason: 'tool',
        detail: 'no',
        outputs: {},
        cost_usd: 0.25,
        duration_ms: 0,
      },
    ])
  })

  test('has an output of up to 10000 bytes, and the size of a longer one', async () => {
    const world = new World()
    world.tools = { first: () => 'x'.repeat(9998), second: () => 'é'.repeat(5000), third: () => ({ done: 'x'.repeat(1024 * 1024) }) }
    await run(world, threeSteps({ 'plan.result_map.answer': '{{who}}' }), { inputs: { who: 'ann' } })
    expect(world.log.slice(1, 4).map(({ output }) => output)).toEqual([
      'x'.repeat(9998),
      { not_logged: '10002 bytes' },
      { kind: 'too_large', sha256: expect.stringMatching(/^[0-9a-f]{64}$/), bytes: 1024 * 1024 + 11 },
    ])
  })

  test('that was reused has its outputs alone', async () => {
    const world = new World()
    world.good.set('deploy.container.appservice:once:ann', { answer: 'third' })
    await run(world, threeSteps({ 'plan.idempotence_key': KEY }), { inputs: who })
    expect(world.log).toEqual([{ ...head, kind: 'skill-reused', outputs: { answer: 'third' } }])
  })
})

describe('a retry', () => {
  const retrying = (changes: Record<string, unknown> = {}) =>
    threeSteps({ 'plan.steps.1.retry': { max_attempts: 3, backoff_ms: 100 }, ...changes })
  const failsTwice = (error: Error) => {
    let calls = 0
    return () => {
      if (++calls <= 2) throw error
      return { calls }
    }
  }

  test('repeats what may go better, after a wait that doubles', async () => {
    const world = new World()
    world.tools = { second: failsTwice(new Retryable('busy')) }
    expect(await run(world, retrying())).toMatchObject({
      status: 'ok',
      latency_ms: 300,
      steps: [{}, { attempts: 3, duration_ms: 300 }, {}],
    })
  })

  test('ends with its attempts', async () => {
    const world = new World()
    world.tools = { second: failsTwice(new Retryable('busy')) }
    const result = await run(world, retrying({ 'plan.steps.1.retry.max_attempts': 2 }))
    expect(result).toMatchObject({ status: 'partial_failure', detail: 'busy', steps: [{}, { attempts: 2 }] })
  })

  test('is not made where the plan names none', async () => {
    const world = new World()
    world.tools = { second: failsTwice(new Retryable('busy')) }
    expect(await run(world, threeSteps())).toMatchObject({ status: 'partial_failure', detail: 'busy', steps: [{}, { attempts: 1 }] })
  })

  test('is not made of what will not go better', async () => {
    const world = new World()
    world.tools = { second: failsTwice(new Error('bad input')) }
    expect(await run(world, retrying())).toMatchObject({ steps: [{}, { attempts: 1, error: 'bad input' }] })
  })

  test('of what was cut off is made under a key only, and always under the same', async () => {
    const slow = () => {
      let calls = 0
      return (_: unknown, { world }: { world: World }) => (++calls === 1 ? world.wait(5000) : { calls })
    }
    const keyed = new World()
    keyed.tools = { second: slow() }
    expect(await run(keyed, retrying({ 'plan.idempotence_key': KEY }), { inputs: who })).toMatchObject({
      status: 'ok',
      steps: [{}, { attempts: 2 }, {}],
    })
    const unkeyed = new World()
    unkeyed.tools = { second: slow() }
    expect(await run(unkeyed, retrying())).toMatchObject({
      status: 'partial_failure',
      reason: 'timeout',
      steps: [{}, { attempts: 1, status: 'timeout' }],
    })
    expect(toolsOf(unkeyed)).toEqual(['first', 'undo_second', 'undo_first'])
  })

  test('that fails after an attempt that was cut off is undone: that one may have happened', async () => {
    const world = new World()
    let calls = 0
    world.tools = {
      second: () => {
        if (++calls === 1) return new Promise(() => {})
        throw new Error('it is being done already')
      },
    }
    const changes = { 'plan.idempotence_key': 'key', 'plan.steps.1.retry': { max_attempts: 2, backoff_ms: 0 } }
    const result = await world.run(threeSteps(changes))
    expect(result).toMatchObject({ status: 'partial_failure', reason: 'tool', detail: 'it is being done already' })
    expect(toolsOf(world)).toEqual(['first', 'undo_second', 'undo_first'])
  })
})

describe('a cancellation', () => {
  test('aborts the current step, and compensates', async () => {
    const world = new World()
    const controller = new AbortController()
    world.tools = {
      second: () => {
        controller.abort()
        return new Promise(() => {})
      },
      undo_second: (_, { signal }) => ({ stopped: signal.aborted }),
    }
    const result = await run(world, threeSteps(), { signal: controller.signal })
    expect(result).toMatchObject({ status: 'partial_failure', reason: 'cancelled', compensation: [{ status: 'ok' }, { status: 'ok' }] })
    expect(toolsOf(world)).toEqual(['first', 'undo_second', 'undo_first'])
  })

  test('before the first step does nothing', async () => {
    expect(await run(new World(), threeSteps(), { signal: AbortSignal.abort() })).toMatchObject({ status: 'failed', reason: 'cancelled' })
  })
})

describe('a key', () => {
  test('whose outputs are known runs nothing', async () => {
    const world = new World()
    const manifest = threeSteps({ 'plan.idempotence_key': KEY })
    await run(world, manifest, { inputs: who })
    expect([...world.good]).toEqual([['deploy.container.appservice:once:ann', { answer: 'third' }]])
    world.journal.clear()
    world.effects.length = 0
    expect(await run(world, manifest, { inputs: who })).toMatchObject({
      status: 'reused',
      outputs: { answer: 'third' },
      writes: [{ path: 'work.answer', after: 'third' }],
      steps: [],
    })
    expect(world.effects).toEqual([])
    expect(await run(world, manifest, { inputs: { who: 'bob' } })).toMatchObject({ status: 'ok' })
  })

  test('lets no other run of it run at the same time, and a run without one waits for none and is remembered under none', async () => {
    const world = new World()
    await run(world, threeSteps())
    expect([world.alone, world.good.size]).toEqual([[], 0])
    world.journal.clear()
    await run(world, threeSteps({ 'plan.idempotence_key': KEY }), { inputs: who })
    expect(world.alone).toEqual(['deploy.container.appservice:once:ann'])
  })

  test('writes only what its outputs have', async () => {
    const world = new World()
    world.good.set('deploy.container.appservice:once:ann', {})
    expect(await run(world, threeSteps({ 'plan.idempotence_key': KEY }), { inputs: who })).toMatchObject({ status: 'reused', writes: [] })
  })

  test('whose outputs were deleted runs nothing either, and says so', async () => {
    const world = new World()
    world.other = { outputs: null, detail: 'its outputs were deleted' }
    expect(await run(world, threeSteps({ 'plan.idempotence_key': KEY }), { inputs: who })).toEqual({
      status: 'reused',
      reason: null,
      detail: 'its outputs were deleted',
      outputs: {},
      blackboard: { ctx: {}, env: {}, work: { flag: true }, policy: {} },
      writes: [],
      cost_usd: 0,
      latency_ms: 0,
      steps: [],
      compensation: [],
    })
    expect(world.effects).toEqual([])
  })

  test('that other work holds runs nothing, and has failed', async () => {
    const world = new World()
    world.other = { not_free: 'a call holds the key' }
    expect(await run(world, threeSteps({ 'plan.idempotence_key': KEY }), { inputs: who })).toEqual({
      status: 'failed',
      reason: 'key',
      detail: 'a call holds the key',
      outputs: {},
      blackboard: { ctx: {}, env: {}, work: { flag: true }, policy: {} },
      writes: [],
      cost_usd: 0,
      latency_ms: 0,
      steps: [],
      compensation: [],
    })
    expect(world.effects).toEqual([])
    expect(await run(world, threeSteps())).toMatchObject({ status: 'ok' })
  })

  test('is not remembered where the run failed', async () => {
    const world = new World()
    world.tools = { third: failing }
    await run(world, threeSteps({ 'plan.idempotence_key': KEY }), { inputs: who })
    expect(world.good.size).toBe(0)
  })

  test('names each step of the run', async () => {
    const world = new World()
    await run(world, threeSteps({ 'plan.idempotence_key': KEY }), { inputs: who })
    expect(world.effects.map(({ key }) => key)).toEqual(
      ['first', 'second', 'third'].map((name) => `deploy.container.appservice:once:ann:run-1:${name}`),
    )
  })
})

test('a secret is in the call and in no log', async () => {
  const world = new World()
  const manifest = threeSteps({ 'signature.inputs.0.secret': true, 'plan.steps.0.args': { key: '{{who}}' } })
  world.tools = {
    first: (args) => ({ echo: args['key'] }),
    second: () => {
      throw new Error('hush-hush is wrong')
    },
  }
  await run(world, manifest, { inputs: { who: 'hush-hush' } })
  expect(world.effects[0]?.args).toEqual({ key: 'hush-hush' })
  expect(JSON.stringify(world.log)).not.toContain('hush')
})

describe('a step for each item of a list', () => {
  const loop = { list: '{{work.steps.first.ids}}', at_most: 3 }
  const looping = (changes: Record<string, unknown> = {}) =>
    threeSteps({
      'plan.idempotence_key': KEY,
      'plan.steps.1': { name: 'second', tool: 'second', args: { id: '{{work.item}}' }, for_each: loop },
      'plan.compensation.1.args': { id: '{{work.item}}' },
      'plan.steps.2.args': { all: '{{work.steps.second}}', by_place: '{{work.steps.1}}' },
      ...changes,
    })
  const giving = (ids: unknown, tools: World['tools'] = {}): World => {
    const world = new World()
    world.tools = { first: () => ({ ids }), second: ({ id }) => ({ of: id ?? null }), ...tools }
    return world
  }

  test('is called once for each, in order, under its own key, and gives the list of their outputs', async () => {
    const world = giving(['a', 'b'])
    const result = await run(world, looping(), { inputs: who })
    expect(result).toMatchObject({
      status: 'ok',
      steps: [{ name: 'first' }, { name: 'second.0' }, { name: 'second.1' }, { name: 'third' }],
    })
    expect(world.effects.slice(1)).toMatchObject([
      { args: { id: 'a' }, key: expect.stringMatching(/:second\.0$/) },
      { args: { id: 'b' }, key: expect.stringMatching(/:second\.1$/) },
      { args: { all: [{ of: 'a' }, { of: 'b' }], by_place: [{ of: 'a' }, { of: 'b' }] } },
    ])
    expect(world.log.filter(({ kind }) => kind === 'skill-step-ended')).toHaveLength(4)
  })

  test('is not called for a list without items, and gives an empty one', async () => {
    const world = giving([])
    expect(await run(world, looping(), { inputs: who })).toMatchObject({ status: 'ok' })
    expect(world.effects[1]).toMatchObject({ tool: 'third', args: { all: [] } })
  })

  test('leaves out the items for which its guard is false', async () => {
    const world = giving([
      { id: 'a', status: 'new' },
      { id: 'b', status: 'old' },
    ])
    const manifest = looping({ 'plan.steps.1.args': { id: '{{work.item.id}}' }, 'plan.steps.1.guard': "work.item.status == 'old'" })
    expect(await run(world, manifest, { inputs: who })).toMatchObject({ status: 'ok' })
    expect(world.effects.map(({ args }) => args)).toMatchObject([{}, { id: 'b' }, { all: [{ of: 'b' }] }])
  })

  test.each([
    ['a longer list', ['a', 'b', 'c', 'd'], /has 4 items; at most 3/],
    ['no list', 'abc', /is not a list/],
  ])('fails for %s, before its first call', async (_, ids, detail) => {
    for (const changes of [{}, { 'plan.steps.1.guard': "work.item == 'a'" }]) {
      const world = giving(ids)
      const result = await run(world, looping(changes), { inputs: who })
      expect(result).toMatchObject({ status: 'partial_failure', reason: 'template', detail: expect.stringMatching(detail) })
      expect(toolsOf(world)).toEqual(['first', 'undo_first'])
    }
  })

  test('undoes the calls that were made, each with its own item, when a later one fails', async () => {
    const world = giving(['a', 'b', 'c'], { second: ({ id }) => (id === 'c' ? failing() : { of: id ?? null }) })
    await run(world, looping(), { inputs: who })
    const undone = world.effects.filter(({ tool }) => tool === 'undo_second')
    expect(undone.map(({ args }) => args)).toEqual([{ id: 'b' }, { id: 'a' }])
  })
})
