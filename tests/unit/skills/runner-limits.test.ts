import { describe, expect, test } from 'vitest'
import { circle } from '../../support/circular-value.ts'
import type { RunResult } from '../../../src/skills/runner/ports.ts'
import { Retryable, threeSteps, toolsOf, World } from './run-world.ts'

const run = async (world: World, ...rest: Parameters<World['run']>): Promise<RunResult> => {
  const result = await world.run(...rest)
  if (result === 'died') throw new Error('nothing was to die')
  return result
}

describe('a limit', () => {
  test('on the time of a step aborts its tool and undoes it, too: it may have happened', async () => {
    const world = new World()
    let stopped = false
    world.tools = {
      second: (_, { signal }) => {
        signal.addEventListener('abort', () => (stopped = true))
        return new Promise(() => {})
      },
    }
    const result = await run(world, threeSteps())
    expect(result).toMatchObject({ status: 'partial_failure', reason: 'timeout', detail: 'second took longer than 1000 ms' })
    expect(stopped).toBe(true)
    expect(toolsOf(world)).toEqual(['first', 'undo_second', 'undo_first'])
  })

  test('on the latency stops the current step', async () => {
    const world = new World()
    const slow = (_: unknown, { world }: { world: World }) => world.wait(600)
    world.tools = { first: slow, second: slow, third: slow, undo_first: slow, undo_second: slow }
    const result = await run(world, threeSteps({ 'plan.budget.max_latency_ms': 1000 }))
    expect(result).toMatchObject({
      status: 'partial_failure',
      reason: 'budget_latency',
      steps: [{ status: 'ok' }, { status: 'timeout', duration_ms: 400 }],
    })
    expect(result.compensation.map(({ status }) => status)).toEqual(['ok', 'ok'])
  })

  test('on the latency stops before a step, and before a wait that would be too long', async () => {
    const world = new World()
    // The clock moves on while the tool works, and the runner's timer comes late.
    world.tools = {
      first: (_, { world }) => {
        world.time += 1000
        return {}
      },
    }
    const spent = await run(world, threeSteps({ 'plan.budget.max_latency_ms': 1000, 'plan.steps.0.timeout_ms': 2000 }))
    expect(spent).toMatchObject({ status: 'partial_failure', reason: 'budget_latency', steps: [{}, { attempts: 0 }] })
    expect(toolsOf(world)).toEqual(['first', 'undo_first'])
    const waiting = new World()
    waiting.tools = {
      first: () => {
        throw new Retryable('busy')
      },
    }
    const changes = { 'plan.steps.0.retry': { max_attempts: 9, backoff_ms: 400 }, 'plan.budget.max_latency_ms': 1000 }
    expect(await run(waiting, threeSteps(changes))).toMatchObject({ status: 'failed', reason: 'tool', steps: [{ attempts: 2 }] })
  })

  test('on the cost stops before the next step, and not at what it allows', async () => {
    const over = await run(new World(), threeSteps({ 'plan.steps.0.args': { cost: 1.01 } }))
    expect(over).toMatchObject({ status: 'partial_failure', reason: 'budget_cost', detail: '1.01 of 1 USD are spent', cost_usd: 1.01 })
    expect(await run(new World(), threeSteps({ 'plan.steps.0.args': { cost: 1 } }))).toMatchObject({ status: 'ok' })
    expect(await run(new World(), threeSteps({ 'plan.steps.2.args': { cost: 9 } }))).toMatchObject({ status: 'ok', cost_usd: 9 })
  })

  test('on the cost counts what failed, too', async () => {
    const world = new World()
    world.tools = {
      first: () => {
        throw Object.assign(new Error('no'), { cost_usd: 0.5 })
      },
    }
    expect(await run(world, threeSteps())).toMatchObject({ cost_usd: 0.5 })
  })

  test('on the cost stops before another attempt, too', async () => {
    const world = new World()
    world.tools = {
      second: () => {
        throw Object.assign(new Retryable('busy'), { cost_usd: 0.6 })
      },
    }
    const result = await run(world, threeSteps({ 'plan.steps.1.retry': { max_attempts: 9, backoff_ms: 0 } }))
    expect(result).toMatchObject({ status: 'partial_failure', reason: 'budget_cost', detail: 'busy', cost_usd: 1.2 })
    expect(result.steps[1]).toMatchObject({ status: 'failed', attempts: 2 })
    expect(toolsOf(world)).toEqual(['first', 'undo_first'])
  })

  test('on the cost leaves to a step what the steps before it left', async () => {
    const world = new World()
    world.tools = {
      second: () => {
        throw Object.assign(new Retryable('busy'), { cost_usd: 0.6 })
      },
    }
    const changes = { 'plan.steps.0.args': { cost: 0.5 }, 'plan.steps.1.retry': { max_attempts: 9, backoff_ms: 0 } }
    const result = await run(world, threeSteps(changes))
    expect(result).toMatchObject({ reason: 'budget_cost', cost_usd: 1.1, steps: [{}, { attempts: 1 }] })
  })

  test('on the latency leaves to a step what the steps before it left, and none at the end of it', async () => {
    const after = async (ms: number) => {
      const world = new World()
      const given: number[] = []
      world.tools = {
        first: (_, { world }) => world.wait(ms),
        second: (_, { timeout_ms }) => {
          given.push(timeout_ms)
          return {}
        },
      }
      const { reason, detail } = await run(world, threeSteps({ 'plan.budget.max_latency_ms': 1000 }))
      return { reason, detail, given }
    }
    expect([await after(0), await after(300), await after(999)]).toMatchObject([{ given: [1000] }, { given: [700] }, { given: [1] }])
  })

  test('on the latency counts the steps before a crash, and not the compensations before it', async () => {
    const world = new World()
    const slow =
      (ms: number) =>
      (_: unknown, { world }: { world: World }) =>
        world.wait(ms)
    const manifest = threeSteps({ 'plan.idempotence_key': 'once' })
    let places = 0
    world.tools = {
      first: slow(30),
      second: slow(40),
      third: () => Promise.reject(new Error('no')),
      undo_second: slow(500),
      undo_first: (_, { world }) => {
        places ||= world.places
        return world.wait(7)
      },
    }
    const calm = await run(world, manifest)
    expect(calm.latency_ms).toBe(30 + 40 + 500 + 7)
    const dying = new World()
    dying.tools = world.tools
    dying.dies_at = places
    expect(await dying.run(manifest)).toBe('died')
    expect(dying.journal.get('compensation 1')?.end).toMatchObject({ duration_ms: 500 })
    dying.time += 10_000
    dying.dies_at = Infinity
    expect(await run(dying, manifest)).toMatchObject({ latency_ms: 30 + 40 + 7, status: 'partial_failure' })
    expect(dying.log.map(({ kind }) => kind)).toContain('skill-resumed')
  })

  test('on the size of an output leaves its hash, which no template can use', async () => {
    const world = new World()
    world.tools = { second: () => ({ done: 'x'.repeat(6_000_000) }) }
    expect(await run(world, threeSteps())).toMatchObject({ status: 'ok' })
    expect(world.journal.get('step 1')?.end?.output).toEqual({
      kind: 'too_large',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      bytes: 6_000_011,
    })
    const using = new World()
    using.tools = world.tools
    for (const x of ['{{work.steps.second.done}}', '{{work.steps.second}}'])
      expect(await run(using, threeSteps({ 'plan.steps.2.args': { x } }))).toMatchObject({ reason: 'template' })
  })

  test.each([
    ['a bigint', 1n],
    ['a circle', circle],
    ['a function', () => 1],
    [
      'endless nesting',
      Array(100)
        .fill(0)
        .reduce((inner) => [inner], 0),
    ],
  ])('on what an output is makes a step fail that gives %s, and undoes it', async (_, output) => {
    const world = new World()
    world.tools = { second: () => output }
    expect(await run(world, threeSteps())).toMatchObject({ status: 'partial_failure', reason: 'output' })
    expect(toolsOf(world)).toEqual(['first', 'second', 'undo_second', 'undo_first'])
  })
})
