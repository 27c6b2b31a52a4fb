import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { main } from '../../../../cli/reflex/main.ts'
import type { LogEntry } from '../../../../src/contract/log-entry.ts'
import { tracesOf } from '../../../../src/features/learning/episodes/recordings.ts'
import { learnSkills, type LearnedSkills } from '../../../../src/features/learning/skills/learn.ts'
import { sampleWith } from '../../../../src/reflexes/reflex-context.ts'
import { openRecordings, seal, type Recording } from '../../../../src/features/replay/recording.ts'
import { checkManifest } from '../../../../src/skills/check.ts'
import { parseManifest } from '../../../../src/skills/manifest/manifest.ts'
import { times, trace } from './build-trace.ts'
import { deployment, deployTools, otherTurns } from './deployments.ts'

async function golden(name: string): Promise<Recording> {
  const opened = await openRecordings(readFileSync(`tests/golden/${name}.trace.json`, 'utf8'))
  const [recording] = opened.ok ? opened.recordings : []
  if (!recording) throw new Error(name)
  return recording
}

describe('an exported trace', () => {
  test('gives its turn, with its calls in order', async () => {
    const recording = await golden('turn-tools')
    expect(tracesOf(recording)).toMatchObject([
      {
        trace_id: recording.trace_id,
        place: { agent: recording.agent.name },
        goal: { text: 'hi', labels: [] },
        acts: [
          { kind: 'tool', name: 'act', input: { text: 'one' }, output: { did: 'one' }, ok: true },
          { kind: 'tool', name: 'act_once', input: { text: 'two' }, ok: true },
        ],
        outcome: 'ok',
      },
    ])
  })

  test('gives a run of a skill as one call, without the calls of its steps', async () => {
    const [turn] = tracesOf(await golden('turn-skill-tools'))
    expect(turn?.acts).toMatchObject([
      { kind: 'skill', name: expect.stringMatching(/^twice\./), input: { what: 'm' }, output: { done: 'm' }, ok: true },
    ])
    expect(turn?.blackboard).toEqual({ ctx: {}, env: {}, work: {}, policy: {} })
  })

  test('gives a call that failed as such', async () => {
    const [turn] = tracesOf(await golden('turn-tool-failed'))
    expect(turn?.acts.some(({ ok }) => !ok)).toBe(true)
  })
})

test('a history is learned from alone: mined, compiled, tested, and the rest rejected with reasons', async () => {
  const options = { tools: deployTools, owner: 'learner', roles: ['operator'], parser_model: 'small', seed: '1', latest: () => null }
  const history = [...times(12, deployment), ...otherTurns, trace(900, [])]
  const learned = await learnSkills(history, options)
  expect(learned).toMatchObject({
    turns: 25,
    candidates: [{ changed: true, evidence: { turns: 12, success: 1 }, report: { passed: true } }],
    rejected: [],
    transitions: [
      { from: 'docker_build_and_push', to: 'deploy.container.appservice', count: 12 },
      { from: 'ensure_acr', to: 'docker_build_and_push', count: 12 },
    ],
  })
  expect(await learnSkills(history.toReversed(), options)).toEqual(learned)
  const unknown = await learnSkills(history, { ...options, tools: new Map() })
  expect(unknown).toMatchObject({
    candidates: [],
    rejected: [{ turns: 12, reason: expect.stringMatching(/no tool that undoes it is known/) }],
  })
})

test('of a long history the latest 10,000 turns count', async () => {
  const options = { tools: deployTools, owner: 'learner', roles: ['operator'], parser_model: null, seed: '1', latest: () => null }
  const old = times(12, deployment)
  const learned = await learnSkills([...times(10_000, (n) => trace(1000 + n, [])), ...old], options)
  expect(learned).toMatchObject({ turns: 10_000, candidates: [], rejected: [] })
})

describe('reflex learn skills', () => {
  let folder = ''
  const printed: string[] = []
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'reflex-learn-'))
    printed.length = 0
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0)
  })
  afterEach(() => {
    vi.restoreAllMocks()
    process.exitCode = undefined
  })

  /** A copy of a recorded turn with other texts. */
  async function recorded(n: number): Promise<string> {
    const { sha256: _sha256, ...recording } = await golden('turn-tools')
    const text = JSON.stringify({ ...recording, trace_id: `${n}`.padStart(32, '0') })
      .replaceAll('"one"', `"one-${n}"`)
      .replaceAll('"two"', `"two-${n}"`)
      .replaceAll('"hi"', '"please do both"')
    const file = join(folder, `${n}.json`)
    writeFileSync(file, JSON.stringify(await seal(JSON.parse(text) as Recording)))
    return file
  }
  const tools = JSON.stringify({
    undo: { undoes: { tool: 'act', match: ['text'] } },
    undo_once: { undoes: { tool: 'act_once', match: ['text'] } },
  })

  test('writes the skill that exported traces repeat', async () => {
    const files = await Promise.all(times(8, recorded))
    const output = join(folder, 'learned')
    expect(await main(['--json', 'learn', 'skills', ...files, '--tools', tools, '--trust', 'test', '--output', output])).toBe(0)
    const [name = ''] = readdirSync(output)
    const parsed = parseManifest(JSON.parse(readFileSync(join(output, name), 'utf8')))
    if (!parsed.ok) throw new Error(parsed.errors[0]?.message)
    expect(checkManifest(parsed.manifest, { tools: ['act', 'act_once', 'undo', 'undo_once'], probes: [] })).toEqual({ ok: true })
    expect(parsed.manifest.plan.steps.map(({ tool, args }) => [tool, args])).toEqual([
      ['act', { text: '{{text}}' }],
      ['act_once', { text: '{{text_2}}' }],
    ])
    expect(JSON.parse(printed.join('')) as LearnedSkills).toMatchObject({ turns: 8, candidates: [{ report: { passed: true } }] })
  })

  test('writes a new version of the same skill if more was recorded, and none if nothing differs', async () => {
    const files = await Promise.all(times(8, recorded))
    const output = join(folder, 'learned')
    const learn = (...read: string[]) => main(['learn', 'skills', ...read, '--tools', tools, '--trust', 'test', '--output', output])
    const versions = () => readdirSync(output).map((name) => [name, versionIn(join(output, name))])
    const versionIn = (file: string) =>
      file.endsWith('.json') ? (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version : ''
    expect(await learn(...files)).toBe(0)
    const [[name = ''] = [], ...others] = versions()
    expect(others).toEqual([['tests', '']])
    expect(await learn(...files)).toBe(0)
    expect(versions()[0]).toEqual([name, '1.0.0'])
    const slower = join(folder, 'slower.json')
    const { sha256: _sha256, ...opened } = JSON.parse(readFileSync(await recorded(9), 'utf8')) as Recording
    const text = JSON.stringify(opened).replaceAll(/"duration_ms":\d+/g, '"duration_ms":9000')
    writeFileSync(slower, JSON.stringify(await seal(JSON.parse(text) as Recording)))
    expect(await learn(...files, slower)).toBe(0)
    expect(versions()[0]).toEqual([name, '1.0.1'])
    expect(JSON.parse(readFileSync(join(output, 'tests', name), 'utf8'))).toHaveLength(9)
  })

  test('takes at most a third of the turns from one sender', async () => {
    const files = await Promise.all(times(8, recorded))
    expect(await main(['learn', 'skills', ...files, '--tools', tools])).toBe(1)
    expect(printed.join('')).toMatch(/0 successful turns contain it: at least 5 must; 8 more are of senders that have more than a third/)
  })

  test('says why nothing was learned, and exits with 1', async () => {
    const files = await Promise.all(times(3, recorded))
    expect(await main(['learn', 'skills', ...files, '--trust', 'test'])).toBe(1)
    expect(printed.join('')).toMatch(/3 turns read, 0 skills found, 1 sequence rejected[^]*3 successful turns contain it: at least 5 must/)
  })
})

describe('reflex learn reflexes', () => {
  let folder = ''
  const printed: string[] = []
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'reflex-learn-'))
    printed.length = 0
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push(String(text)) > 0)
  })
  afterEach(() => {
    vi.restoreAllMocks()
    process.exitCode = undefined
  })

  /** A copy of a recorded turn that calls one tool, or none, with the context of its event. */
  async function recorded(n: number, { acts, shown = true }: { acts: boolean; shown?: boolean }): Promise<string> {
    const { sha256: _sha256, ...recording } = await golden('turn-tools')
    const isLeftOut = (tool: string) => !acts || tool === 'act_once'
    const entries = recording.entries.flatMap((entry): LogEntry[] => {
      if ((entry.kind === 'effect-started' || entry.kind === 'effect-ended') && isLeftOut(entry.tool)) return []
      if (entry.kind !== 'turn-ended') return [entry]
      return [{ ...entry, acts: entry.acts.filter((act) => act.act === 'call_tool' && !isLeftOut(act.tool)) }]
    })
    const [id, own] = [recording.events[0]?.event.id ?? '', `e${String(n).padStart(4, '0')}`]
    const said = acts ? `please open door-${n}` : `just saying ${n}`
    const event = { ...recording.events[0]?.event, source: `user:${n % 7}` }
    const contexts = shown ? { [id]: sampleWith(event) } : {}
    const text = JSON.stringify({ ...recording, entries, contexts, events: [{ seq: 1, event }] })
      .replaceAll('"one"', `"door-${n}"`)
      .replaceAll('"hi"', JSON.stringify(said))
      .replaceAll(id, own)
      .replaceAll(recording.trace_id, `${n}`.padStart(32, '0'))
    const file = join(folder, `${n}.json`)
    writeFileSync(file, JSON.stringify(await seal(JSON.parse(text) as Recording)))
    return file
  }

  test('writes the code of the decisions that exported traces repeat', async () => {
    const files = await Promise.all(times(180, (n) => recorded(n, { acts: n % 2 === 0 })))
    const output = join(folder, 'learned')
    expect(await main(['--json', 'learn', 'reflexes', ...files, '--output', output])).toBe(0)
    const learned = JSON.parse(printed.join('')) as { reflexes: { decision: string; code: string; evidence: { traces: string[] } }[] }
    const acting = learned.reflexes.find(({ decision }) => decision.startsWith('tool act'))
    expect(acting?.code).toContain("tool: 'act'")
    expect(acting?.evidence.traces).toHaveLength(90)
    expect(readdirSync(output)).toHaveLength(learned.reflexes.length)
  })

  test('counts the decisions that it cannot use, with reasons, and exits with 1 if nothing was learned', async () => {
    const files = await Promise.all(times(5, (n) => recorded(n, { acts: true, shown: n > 1 })))
    expect(await main(['learn', 'reflexes', ...files])).toBe(1)
    expect(printed.join('')).toMatch(
      /3 decisions read, 0 reflexes found[^]*2 decisions skipped: the export does not have the context of its event[^]*at least 40 decisions are needed/,
    )
  })
})
