import { expect, test } from 'vitest'
import { BlackboardLayers } from '../../../src/engine/skills/blackboard-layers.ts'
import { scopeHead } from '../../../src/engine/log/spans.ts'
import { part } from '../agents/agent-fixtures.ts'

const head = scopeHead()
type Setting = Record<string, unknown>
type Parts = ConstructorParameters<typeof BlackboardLayers>[0]

/** The layers of a scope whose agent has the probe `count`, at a time that the test sets. */
function layersOf(settings: Setting, { scratch = {} }: { scratch?: Setting } = {}) {
  const world = { now: 1_000_000, calls: 0 }
  const count = () => (world.calls += 1)
  const layers = new BlackboardLayers(
    part<Parts>({
      agent: () => ({ name: 'a', probes: { count } }),
      settings: () => ({ blackboard: {}, http_tools: [], allowed_hosts: [], ...settings }),
      memory: { live: { scratch } },
      now: () => world.now,
    }),
  )
  return { layers, world }
}
const counting = { blackboard_probes: [{ name: 'count', probe: 'count', ttl_s: 60 }] }

test('a probe is asked again once its answer is older than its time to live', async () => {
  const { layers, world } = layersOf(counting)
  await layers.refresh(head)
  world.now += 60_000
  await layers.refresh(head)
  expect(layers.seed()).toMatchObject({ blackboard: { env: { count: 1 } }, ages_ms: { 'env.count': 60_000 } })
  world.now += 1
  expect(layers.seed()).toMatchObject({ blackboard: { env: {} } })
  await layers.refresh(head)
  expect(layers.seed()).toMatchObject({ blackboard: { env: { count: 2 } }, ages_ms: { 'env.count': 0 } })
})

test('a probe is asked again after the clock was set back', async () => {
  const { layers, world } = layersOf(counting)
  await layers.refresh(head)
  world.now -= 1
  await layers.refresh(head)
  expect(layers.seed()).toMatchObject({ blackboard: { env: { count: 2 } } })
})

test('sessions that open at the same time share one answer', async () => {
  const { layers, world } = layersOf(counting)
  await Promise.all([layers.refresh(head), layers.refresh(head)])
  expect(world.calls).toBe(1)
})

test('the exported scratch is bounded: a key that no longer fits is left out, with the reason', () => {
  const scratch = { large: 'x'.repeat(10_000), larger: 'y'.repeat(10_000), small: 1, lock: { secret: 'REFLEX_TOOL_X' } }
  const { layers } = layersOf({ blackboard_scratch: ['large', 'larger', 'small', 'lock', 'absent'] }, { scratch })
  expect(layers.seed()).toMatchObject({
    blackboard: { ctx: { large: scratch.large, small: 1 } },
    omitted: { 'ctx.larger': expect.stringContaining('takes 10002 bytes'), 'ctx.lock': expect.stringContaining('names a secret') },
    sources: { 'ctx.large': 'agent_state', 'ctx.small': 'agent_state' },
  })
})
