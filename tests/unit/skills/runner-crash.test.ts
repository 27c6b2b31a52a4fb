import { describe, expect, test } from 'vitest'
import type { Manifest } from '../../../src/skills/manifest/manifest.ts'
import type { RunResult } from '../../../src/skills/runner/ports.ts'
import { threeSteps, toolsOf, World, type Tool } from './run-world.ts'

const inputs = { who: 'ann' }
const plans = {
  unkeyed: threeSteps(),
  keyed: threeSteps({ 'plan.idempotence_key': 'once:{{who}}' }),
  looping: threeSteps({
    'plan.idempotence_key': 'once:{{who}}',
    'plan.steps.1': {
      name: 'second',
      tool: 'second',
      args: { id: '{{work.item}}' },
      for_each: { list: '{{work.steps.first.ids}}', at_most: 5 },
    },
    'plan.compensation.1.args': { id: '{{work.item}}' },
  }),
}
const fails: Record<string, Tool> = {
  third: () => {
    throw new Error('no')
  },
}
const outcomes = { 'that succeeds': {}, 'whose third step fails': fails }
const names = ['first', 'second', 'third']

/** Runs a plan that dies at `place`, then at `again` counted from there, until it ends. */
async function crash(manifest: Manifest, { tools, places }: { tools: Record<string, Tool>; places: number[] }) {
  const world = new World()
  world.tools = tools
  const gaps: boolean[] = []
  for (const place of [...places, Infinity]) {
    world.places = 0
    world.dies_at = place
    const result = await world.run(manifest, { inputs })
    if (result !== 'died') return { world, result, gaps }
    gaps.push([...world.journal.values()].some(({ begun, end }) => begun !== null && end === null))
  }
  throw new Error('the last run cannot die')
}

async function uncrashed(manifest: Manifest, tools: Record<string, Tool>): Promise<{ result: RunResult; places: number }> {
  const { world, result } = await crash(manifest, { tools, places: [] })
  return { result, places: world.places }
}

const timesOf = (world: World): Map<string, number> => {
  const times = new Map<string, number>()
  for (const tool of toolsOf(world)) times.set(tool, (times.get(tool) ?? 0) + 1)
  return times
}

describe.each(Object.entries(outcomes))('a plan %s, and whose process dies', (_, tools) => {
  test('anywhere, without a key: no effect happens twice, and where it is not known whether one happened the run says so and undoes', async () => {
    const { result: calm, places } = await uncrashed(plans.unkeyed, tools)
    expect(places).toBeGreaterThan(12)
    for (let place = 1; place <= places; place++) {
      const { world, result, gaps } = await crash(plans.unkeyed, { tools, places: [place] })
      const times = timesOf(world)
      expect(
        [...times.values()].every((count) => count === 1),
        `place ${place}: ${toolsOf(world).join()}`,
      ).toBe(true)
      const expected = gaps[0] ? 'unknown' : calm.status
      expect(result.status, `place ${place}`).toBe(expected)
      if (result.status === 'ok') continue
      for (const name of names) {
        const undone =
          times.has(`undo_${name}`) || result.compensation.some(({ undoes, status }) => undoes === name && status === 'unknown')
        expect(undone || !times.has(name), `place ${place}: ${name} is not undone`).toBe(true)
      }
    }
  })

  test('anywhere, with a key: it comes to the same end, and what is repeated has the same key', async () => {
    const { result: calm, places } = await uncrashed(plans.keyed, tools)
    for (let place = 1; place <= places; place++) {
      const { world, result } = await crash(plans.keyed, { tools, places: [place] })
      expect({ ...result, latency_ms: 0 }, `place ${place}`).toEqual({ ...calm, latency_ms: 0 })
      const repeated = [...timesOf(world).values()].filter((count) => count > 1)
      expect(repeated.length, `place ${place}: only what had no end is repeated`).toBeLessThanOrEqual(1)
      for (const tool of new Set(toolsOf(world))) {
        const keys = new Set(world.effects.filter((effect) => effect.tool === tool).map(({ key }) => key))
        expect([...keys], `place ${place}`).toEqual([expect.stringContaining(':run-1:')])
      }
    }
  })

  test('twice, anywhere: the same holds', async () => {
    const { result: calm, places } = await uncrashed(plans.keyed, tools)
    for (let first = 1; first <= places; first++) {
      for (let second = 1; second <= places; second++) {
        const keyed = await crash(plans.keyed, { tools, places: [first, second] })
        expect(keyed.result.status, `places ${first}, ${second}`).toBe(calm.status)
        const unkeyed = await crash(plans.unkeyed, { tools, places: [first, second] })
        expect(
          [...timesOf(unkeyed.world).values()].every((count) => count === 1),
          `places ${first}, ${second}`,
        ).toBe(true)
        expect(unkeyed.result.status, `places ${first}, ${second}`).toBe(unkeyed.gaps.includes(true) ? 'unknown' : calm.status)
      }
    }
  })
})

test('a run that was lost in a step is reported as lost', async () => {
  const { result } = await crash(plans.unkeyed, { tools: {}, places: [4] })
  expect(result).toMatchObject({ status: 'unknown', reason: 'lost', steps: [{ name: 'first', status: 'unknown', attempts: 0 }] })
  expect(result.compensation).toMatchObject([{ undoes: 'first', status: 'ok' }])
})

test('a step that was begun is called again whatever its guard says now', async () => {
  const world = new World()
  const manifest = threeSteps({ 'plan.idempotence_key': 'once:{{who}}', 'plan.steps.0.guard': 'work.flag' })
  world.dies_at = 4
  expect(await world.run(manifest, { inputs })).toBe('died')
  manifest.plan.steps[0] = { ...manifest.plan.steps[0], guard: '!work.flag' } as never
  world.dies_at = Infinity
  expect(await world.run(manifest, { inputs })).toMatchObject({ status: 'ok', steps: [{ status: 'ok' }, {}, {}] })
})

test('a started step may have happened, even if the resumed run is cancelled', async () => {
  const world = new World()
  const manifest = threeSteps({ 'plan.idempotence_key': 'once:{{who}}' })
  world.dies_at = 4
  expect(await world.run(manifest, { inputs })).toBe('died')
  world.dies_at = Infinity
  const result = await world.run(manifest, { inputs, signal: AbortSignal.abort() })
  expect(result).toMatchObject({ status: 'partial_failure', reason: 'cancelled', compensation: [{ undoes: 'first', status: 'ok' }] })
})

test('a loop that failed and whose process dies anywhere comes to the same end, whatever the order of its compensations', async () => {
  const manifest = structuredClone(plans.looping)
  manifest.plan.compensation = [1, 0, 2].map((place) => manifest.plan.compensation[place]!)
  const tools: Record<string, Tool> = { ...fails, first: () => ({ ids: ['a'] }) }
  const { result: calm, places } = await uncrashed(manifest, tools)
  expect(calm.compensation.map(({ undoes }) => undoes)).toEqual(['second.0', 'first'])
  for (let place = 1; place <= places; place++) {
    const { result } = await crash(manifest, { tools, places: [place] })
    expect({ ...result, latency_ms: 0 }, `place ${place}`).toEqual({ ...calm, latency_ms: 0 })
  }
})

test('a compensation that has ended is not run again', async () => {
  for (const manifest of [plans.keyed, plans.unkeyed]) {
    const { places } = await uncrashed(manifest, fails)
    const { world, result } = await crash(manifest, { tools: fails, places: [places] })
    expect(toolsOf(world)).toEqual(['first', 'second', 'undo_second', 'undo_first'])
    expect(result.compensation.map(({ status }) => status)).toEqual(['ok', 'ok'])
  }
})

test('a loop whose process dies anywhere calls each item under one key, and none is left out', async () => {
  const tools: Record<string, Tool> = { first: () => ({ ids: ['a', 'b', 'c'] }) }
  const { places } = await uncrashed(plans.looping, tools)
  for (let place = 1; place <= places; place++) {
    const { world, result } = await crash(plans.looping, { tools, places: [place] })
    expect(result.status, `place ${place}`).toBe('ok')
    const keys = new Map(world.effects.map(({ args, key }) => [key, args['id']]))
    expect(
      [...keys.values()].filter((id) => id !== undefined),
      `place ${place}`,
    ).toEqual(['a', 'b', 'c'])
  }
})
