import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isStepCount, tool, ToolLoopAgent } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { main } from '../../../cli/reflex/main.ts'
import { createReflex } from '../../../src/standalone/node/index.ts'
import type { Reflex } from '../../../src/standalone/index.ts'
import { proposal, resultOf, world } from './fixtures.ts'

const ref = z.object({ ref: z.string() })
const undoing = { unbuild: { undoes: { tool: 'build', match: ['ref'] } }, unship: { undoes: { tool: 'ship', match: ['image'] } } }

/** A process whose model builds and ships what it is asked to, as often as it is asked. */
async function shipping(reflex: Reflex, turns: number): Promise<void> {
  const tools = {
    build: tool({ inputSchema: ref, execute: async ({ ref }) => ({ image: `image-of-${ref}` }) }),
    ship: tool({ inputSchema: z.object({ image: z.string() }), execute: async () => ({ done: true }) }),
  }
  for (let n = 0; n < turns; n += 1) {
    const script = [
      resultOf({ calls: [{ name: 'build', input: { ref: `ref-${n}` } }] }, 2 * n),
      resultOf({ calls: [{ name: 'ship', input: { image: `image-of-ref-${n}` } }] }, 2 * n + 1),
      resultOf('It is out.'),
    ]
    const model = new MockLanguageModelV4({ modelId: 'gpt-5', doGenerate: async () => script.shift() ?? resultOf('?') })
    const agent = reflex.wrap({ agent: new ToolLoopAgent({ model, tools, stopWhen: isStepCount(5) }) })
    await agent.generate({ prompt: `Please ship ref-${n}` })
  }
}

describe('a snapshot of what a process did', () => {
  test('gives the skill that its turns repeat, tested, and registers nothing', async () => {
    const { reflex } = world()
    await shipping(reflex, 8)
    const learned = await reflex.learnSnapshot({ tools: undoing })
    expect(learned).toMatchObject({
      episodes: { read: 8, skipped: [] },
      candidates: [{ kind: 'skill', changed: true, evidence: { turns: 8, success: 1 }, report: { passed: true } }],
      rejected: [{ kind: 'reflex', what: 'all', reason: expect.stringContaining('a reflex decides on events of a scope') }],
    })
    expect(learned.candidates[0]?.manifest.plan.steps.map(({ tool, args }) => [tool, args])).toEqual([
      ['build', { ref: '{{ref}}' }],
      ['ship', { image: expect.anything() }],
    ])
    expect(reflex.registry.list()).toHaveLength(1)
    expect(await reflex.learnSnapshot({ tools: undoing })).toEqual(learned)
  })

  test.each([
    [{ windw: 5 }, 'Unrecognized key: "windw"'],
    [{ window: 0 }, 'at window'],
    [{ tools: { build: { undoes: 'unbuild' } } }, 'at tools.build.undoes'],
  ])('refuses %j by the name of the option', async (options, message) => {
    const { reflex } = world()
    await expect(reflex.learnSnapshot(options as object)).rejects.toThrow(message)
  })

  test('knows the version that it gave before', async () => {
    const { reflex } = world()
    await shipping(reflex, 8)
    const { candidates } = await reflex.learnSnapshot({ tools: undoing })
    reflex.registry.register(candidates[0]?.manifest, { state: 'candidate' })
    expect(await reflex.learnSnapshot({ tools: undoing })).toMatchObject({ candidates: [{ changed: false }] })
  })

  test('reads the latest turns only, counts the cost of their models, and a run of a skill as one act', async () => {
    const { reflex } = world()
    await shipping(reflex, 3)
    const asked = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Save a note' }] }] }
    const script = [resultOf(proposal('milk')), resultOf('Done.')]
    await reflex.wrapModel(new MockLanguageModelV4({ doGenerate: async () => script.shift() ?? resultOf('?') })).doGenerate(asked)
    expect(await reflex.learnSnapshot({ window: 2 })).toMatchObject({ episodes: { read: 2 } })
    const { readStandalone } = await import('../../../src/features/learning/episodes/standalone.ts')
    const { traces } = readStandalone(reflex.log, { place: { agent: '', agent_version: '' }, labels: [], most: 2 })
    expect(traces).toMatchObject([
      { goal: { text: 'Please ship ref-2' }, acts: [{ name: 'build' }, { name: 'ship' }], usage: { model_calls: 3, tokens: 39 } },
      { goal: { text: 'Save a note' }, acts: [{ kind: 'skill', name: 'note.save', ok: true }], usage: { model_calls: 2 } },
    ])
    expect(traces[0]?.usage.cost_usd).toBeGreaterThan(0)
  })

  test('skips calls of tools that were wrapped apart from a turn', async () => {
    const { reflex } = world()
    const tools = reflex.wrapTools({ build: tool({ inputSchema: ref, execute: async () => ({ image: 'x' }) }) })
    await tools.build.execute?.({ ref: 'r' }, { toolCallId: '1', messages: [], context: undefined } as never)
    expect(await reflex.learnSnapshot()).toMatchObject({
      episodes: { read: 0, skipped: [{ reason: expect.stringContaining('apart from a turn'), count: 1 }] },
    })
  })
})

describe('reflex learn skills', () => {
  test('reads the file of a process', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'reflex-snapshot-'))
    const printed: string[] = []
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0)
    try {
      const file = join(folder, 'process.db')
      const reflex = createReflex({ project: 'acme/notes', storage: { file } })
      await shipping(reflex, 8)
      reflex.close()
      expect(await main(['--json', 'learn', 'skills', file, '--tools', JSON.stringify(undoing)])).toBe(0)
      expect(JSON.parse(printed.join(''))).toMatchObject({ turns: 8, candidates: [{ report: { passed: true } }] })
      printed.length = 0
      expect(await main(['learn', 'reflexes', file])).not.toBe(0)
    } finally {
      vi.restoreAllMocks()
      process.exitCode = undefined
    }
  })
})
