import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { dynamicTool, generateText, isStepCount, streamText, tool, ToolLoopAgent } from 'ai'
import { MockLanguageModelV4 } from 'ai/test'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { Reflex } from '../../../src/standalone/index.ts'
import { createReflex } from '../../../src/standalone/node/index.ts'
import { proposal, resultOf, saveNote, saveNoteWith, scripted, world } from './fixtures.ts'

const same = { equivalent: true, divergences: [], unknown: [], complete: true }
const tracesOf = ({ log }: Reflex): string[] => [
  ...new Set(log.entries().flatMap(({ kind, trace_id }) => (kind === 'part' ? [] : [trace_id]))),
]
const entriesOf = ({ log }: Reflex, wanted: string) => log.entries().filter(({ kind }) => kind === wanted)

async function replayed(reflex: Reflex) {
  const [trace_id = '', ...others] = tracesOf(reflex)
  expect(others).toEqual([])
  return reflex.replay(trace_id)
}

const look = tool({ description: 'Looks', inputSchema: z.object({ at: z.string() }), execute: async ({ at }) => `seen at ${at}` })

describe('a replay of the log of a process', () => {
  test('decides everything again: prompts, proposals, plans and answers of an agent', async () => {
    const { reflex, saved } = world()
    const asks = { text: 'Let me look.', calls: [{ name: 'look', input: { at: 'the shop' } }] }
    const model = scripted(asks, `I save it. ${proposal('milk')}`, proposal('bread'), 'Done.')
    const agent = reflex.wrap({ agent: new ToolLoopAgent({ model, tools: { look }, instructions: 'You help.', temperature: 0 }) })
    expect((await agent.generate({ prompt: 'Save a note' })).text).toContain('Done.')
    const report = await replayed(reflex)
    expect(report).toMatchObject({ ...same, mode: 'pinned', recorded: { usage: { model_calls: 4 } } })
    const asked = entriesOf(reflex, 'model-called')
    expect(report.compared).toBeGreaterThan(asked.length + entriesOf(reflex, 'skill-decided').length)
    expect(saved).toEqual(['milk', 'bread'])
  })

  test.each([
    ['a stream', { protocol: 'asp' as const, answers: [`Now. ${proposal('milk')}`, 'Done.'] }],
    ['native tools', { protocol: 'tools' as const, answers: [{ calls: [{ name: 'propose_skill', input: {} }] }, 'Done.'] }],
    ['a question', { protocol: 'asp' as const, answers: ['<CLARIFY>{"questions":[{"slot":"title","question":"Which?"}]}</CLARIFY>'] }],
    ['a skill that does not exist', { protocol: 'asp' as const, answers: [proposal('milk', 'no.such'), 'Never mind.'] }],
  ])('repeats %s', async (_, { protocol, answers }) => {
    const { reflex } = world({ protocol })
    const stream = streamText({ model: reflex.wrapModel(scripted(...answers)), prompt: 'Save a note' })
    await stream.consumeStream()
    expect(await replayed(reflex)).toMatchObject(same)
  })

  test('repeats a call that failed and was tried again', async () => {
    const { reflex } = world()
    let calls = 0
    const model = new MockLanguageModelV4({
      doGenerate: async () => {
        calls += 1
        if (calls === 2) throw Object.assign(new Error('busy'), { isRetryable: true })
        return resultOf(calls === 1 ? proposal('milk') : 'Done.')
      },
    })
    const wrapped = reflex.wrapModel(model)
    const asked = { prompt: [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Save a note' }] }] }
    await expect(wrapped.doGenerate(asked)).rejects.toThrow('busy')
    expect(await replayed(reflex)).toMatchObject(same)
    await wrapped.doGenerate(asked)
    expect(await replayed(reflex)).toMatchObject(same)
  })

  test('repeats a run whose tool fails, with the compensation of what was done', async () => {
    const plan = {
      ...saveNote.plan,
      steps: [...saveNote.plan.steps, { tool: 'fails', args: {}, timeout_ms: 1000 }],
      compensation: [{ when: 'partial_failure', tool: 'notes.save', args: { title: 'undone' } }],
    }
    const { reflex, tools, saved } = world({ skills: [saveNoteWith({ plan })] })
    const fails = dynamicTool({
      inputSchema: z.object({}),
      execute: async () => {
        throw new Error('no paper')
      },
    })
    const { model } = reflex.wrap({ model: scripted(proposal('milk'), 'It failed.'), tools: { fails, ...tools } })
    await generateText({ model, prompt: 'Save a note' })
    expect(saved).toEqual(['milk', 'undone'])
    expect(await replayed(reflex)).toMatchObject(same)
  })

  test('repeats what a person approved', async () => {
    const policy = { ...saveNote.policy, needs_approval_if: ['true'] }
    const { reflex, saved } = world({ skills: [saveNoteWith({ policy })] })
    await generateText({ model: reflex.wrapModel(scripted(proposal('milk'), 'It waits.')), prompt: 'Save a note' })
    await reflex.approvals.approve(reflex.approvals.list()[0]?.approval_id ?? '')
    expect(saved).toEqual(['milk'])
    expect(await replayed(reflex)).toMatchObject(same)
  })

  test('shows what another manifest would change', async () => {
    const { reflex } = world()
    await generateText({ model: reflex.wrapModel(scripted(proposal('milk'), 'Done.')), prompt: 'Save a note' })
    const [trace_id = ''] = tracesOf(reflex)
    const manifest = saveNoteWith({ policy: { allow_roles: ['boss'] } }) as { id: string }
    const report = await reflex.replay(trace_id, { mode: 'what_if', changes: { manifest } })
    const gate = expect.objectContaining({ kind: 'gate', path: '/verdict', recorded: 'allow', replayed: 'deny' })
    expect(report).toMatchObject({ mode: 'what_if', equivalent: false, divergences: expect.arrayContaining([gate]) })
    await expect(reflex.replay(trace_id, { mode: 'what_if' })).rejects.toThrow('a what_if needs changes')
    await expect(reflex.replay('no-such')).rejects.toThrow('the log has no trace no-such')
  })

  test('shows a change in what was recorded', async () => {
    const { reflex } = world()
    const log = reflex.log as { entries: typeof reflex.log.entries }
    await generateText({ model: reflex.wrapModel(scripted(proposal('milk'), 'Done.')), prompt: 'Save a note' })
    const all = reflex.log.entries()
    log.entries = (query) =>
      all.filter(({ seq, trace_id }) => seq > (query?.after ?? 0) && trace_id === (query?.trace_id ?? trace_id)).map(forged)
    const { divergences } = await replayed(reflex)
    expect(divergences).toMatchObject([{ kind: 'gate', path: '/decision/verdict', recorded: 'deny', replayed: 'allow' }])
  })
})

const forged = <Row extends { kind: string }>(row: Row): Row =>
  row.kind === 'skill-decided' && 'decision' in row ? { ...row, decision: { ...(row.decision as object), verdict: 'deny' } } : row

describe('the log of a process', () => {
  test('has the tools that were offered, the options, and each message once', async () => {
    const { reflex } = world()
    const model = reflex.wrapModel(scripted({ calls: [{ name: 'look', input: { at: 'home' } }] }, 'Done.'))
    await generateText({ model, prompt: 'Look around', tools: { look }, temperature: 0.5, stopWhen: isStepCount(2) })
    const calls = entriesOf(reflex, 'model-called')
    const parts = new Map(entriesOf(reflex, 'part').map(({ trace_id, value }) => [trace_id.replace('part:', ''), value]))
    expect(parts.size).toBe(entriesOf(reflex, 'part').length)
    expect(new Set(calls.map(({ request }) => request)).size).toBe(1)
    expect(parts.get(calls[0]?.['request'] as string)).toMatchObject({
      temperature: 0.5,
      tools: [{ name: 'look', inputSchema: { properties: { at: { type: 'string' } } } }],
    })
    const messages = calls.map(({ prompt }) => (prompt as string[]).map((hash) => parts.get(hash)))
    expect(messages[1]).toMatchObject([{ role: 'user' }, { role: 'assistant' }, { role: 'tool' }])
    expect(calls[0]).toMatchObject({
      content: [{ type: 'tool-call', toolName: 'look', input: { at: 'home' } }],
      finish_reason: 'tool-calls',
    })
  })

  test('has one trace for a turn, also of tools that are wrapped beside their model', async () => {
    const { reflex } = world()
    const { model, tools } = reflex.wrap({
      model: scripted({ calls: [{ name: 'look', input: { at: 'home' } }] }, 'Done.'),
      tools: { look },
    })
    await generateText({ model, tools, prompt: 'Look around', stopWhen: isStepCount(2) })
    expect(tracesOf(reflex)).toHaveLength(1)
    expect(await replayed(reflex)).toMatchObject({ ...same, recorded: { effects: 1 } })
  })

  test('has no secret that a user pastes, and is replayed without it', async () => {
    const { reflex } = world()
    const pasted = 'My key is sk-live-1234567890abcdef1234, password=hunter22 . Save a note'
    await generateText({ model: reflex.wrapModel(scripted('Please keep that to yourself.')), prompt: pasted })
    const text = JSON.stringify(reflex.log.entries())
    expect(text).toContain('My key is [secret: token], password=[secret: password] . Save a note')
    for (const secret of ['sk-live', 'hunter22']) expect(text).not.toContain(secret)
    expect(await replayed(reflex)).toMatchObject(same)
  })

  test('is replayed from its file by another process', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'reflex-'))
    const file = path.join(folder, 'agent.reflex')
    const config = { project: 'acme/notes', roles: ['writer'], storage: { file } }
    const first = createReflex({ ...config, skills: [saveNote], tools: world().tools })
    await generateText({ model: first.wrapModel(scripted(proposal('milk'), 'Done.')), prompt: 'Save a note' })
    const [trace_id = ''] = tracesOf(first)
    expect(trace_id).toMatch(/^[0-9a-f]{32}$/)
    first.close()
    const second = createReflex(config)
    expect(await second.replay(trace_id)).toMatchObject({ ...same, trace_id })
    second.close()
  })
})
