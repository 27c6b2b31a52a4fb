import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { WRAPPED_CALLER } from '../../../src/agent/wrapped.ts'
import { isProbe, RecordedEffects } from '../../../src/features/replay/recorded-effects.ts'
import { Comparison, Unrecorded } from '../../../src/features/replay/report.ts'
import { cleanerOf, Source } from '../../../src/features/replay/source.ts'
import { defineTool } from '../../../src/tools/define-tool.ts'
import { part } from '../agents/agent-fixtures.ts'

type Parts = ConstructorParameters<typeof RecordedEffects>[2]
type Ended = Extract<LogEntry, { kind: 'effect-ended' }>
type Call = { tool: string; input?: unknown } & Partial<Omit<Ended, 'tool' | 'input'>>

const TURN = part<LogEntry>({ kind: 'turn-started', span_id: 'turn', parent_id: null })
const reads = { cause: { by: 'blackboard' } }

/** The effects of a turn that made these calls; one without an input has none in the log. */
function recorded(calls: readonly Call[], { probed = [], ...more }: Partial<Parts> & { probed?: readonly string[] } = {}) {
  const beginning = { kind: 'effect-started', span_id: '', parent_id: 'turn' }
  const ended = calls.map((call, index) => {
    const at = { kind: 'effect-ended', parent_id: 'turn', span_id: `s${index}`, effect_id: `e${index}` }
    return part<LogEntry>({ ...at, status: 'ok', output: `output ${index}`, error: null, duration_ms: 10, ...call })
  })
  const started = calls.map((_, index) => {
    const effect_id = `e${index}`
    return part<LogEntry>({ ...beginning, effect_id, ...(probed.includes(effect_id) ? reads : { cause: { by: 'turn' } }) })
  })
  const comparison = new Comparison()
  const source = new Source(part<ConstructorParameters<typeof Source>[0]>({ scope: 'a', events: [], entries: [...started, ...ended] }))
  const effects = new RecordedEffects(source, TURN, { offered: [], comparison, clean: (value) => value, exact: false, ...more })
  const run = (name: string, input: unknown, definition: Parameters<RecordedEffects['run']>[2] = null) =>
    effects.run(name, input, definition)
  return { effects, comparison, run }
}

describe('the calls of a turn that is replayed', () => {
  test('are answered as they ended, the same call in its order', async () => {
    const { run, effects, comparison } = recorded([
      { tool: 'mail', input: 1 },
      { tool: 'look', input: 1, status: 'reused' },
      { tool: 'mail', input: 1 },
      { tool: 'mail', input: { b: 1, a: 2 } },
    ])
    const outputs = [await run('mail', { a: 2, b: 1 }), await run('mail', 1), await run('look', 1), await run('mail', 1)]
    expect(outputs).toEqual(['output 3', 'output 0', 'output 1', 'output 2'])
    expect([effects.recorded, effects.made, effects.missing]).toEqual([4, 4, null])
    expect(comparison).toMatchObject({ compared: 4, changed: 0, decisions: { effect: { same: 4 } } })
  })

  test('fail as they failed, with their error or a sentence', async () => {
    const { run, effects } = recorded([
      { tool: 'mail', input: 1, status: 'failed', error: 'no such address' },
      { tool: 'look', input: 1, status: 'unknown', error: null },
    ])
    await expect(run('mail', 1)).rejects.toThrow('no such address')
    await expect(run('look', 1)).rejects.toThrow('the tool look failed')
    expect(effects.made).toBe(2)
  })

  test('with another input take the next call of the tool, and differ', async () => {
    const { run, comparison } = recorded([
      { tool: 'look', input: 0 },
      { tool: 'mail', input: 1 },
      { tool: 'mail', input: 2 },
    ])
    expect([await run('mail', 3), await run('mail', 2)]).toEqual(['output 1', 'output 2'])
    expect(comparison.divergences).toEqual([{ span_id: 's1', kind: 'effect', path: '', recorded: 1, replayed: 3 }])
  })

  test('whose input the log does not have fit any input', async () => {
    const { run, comparison } = recorded([{ tool: 'mail' }], { exact: true })
    expect(await run('mail', 3)).toBe('output 0')
    expect(comparison).toMatchObject({ compared: 1, changed: 0 })
  })

  test('whose input the log does not have fit no other tool', async () => {
    const { run } = recorded([{ tool: 'look' }], { exact: true })
    await expect(run('mail', 3)).rejects.toThrow('the tool mail was not called with this input')
  })

  test('take what the log has first, whether or not it has the input', async () => {
    const { run } = recorded([{ tool: 'mail' }, { tool: 'mail', input: 1 }, { tool: 'mail' }, { tool: 'mail', input: 2 }])
    expect([await run('mail', 2), await run('mail', 2), await run('mail', 1), await run('mail', 3)]).toEqual([
      'output 0',
      'output 2',
      'output 1',
      'output 3',
    ])
    const later = recorded([{ tool: 'mail', input: 1 }, { tool: 'mail' }])
    expect([await later.run('mail', 1), await later.run('mail', 1)]).toEqual(['output 0', 'output 1'])
  })

  test('are found in good time among thousands, in whatever order they are made', { tags: ['timed'] }, async () => {
    const many = 6000
    const { run } = recorded(Array.from({ length: many }, (_, to) => ({ tool: 'mail', input: { to } })))
    const started = performance.now()
    for (let to = many - 1; to >= 0; to -= 1) expect(await run('mail', { to })).toBe(`output ${to}`)
    expect(performance.now() - started).toBeLessThan(3000)
  })

  test('are compared as the log masks them', async () => {
    const { run, comparison } = recorded([{ tool: 'mail', input: '[secret]' }], { clean: () => '[secret]' })
    await run('mail', 'hush')
    expect(comparison.changed).toBe(0)
  })

  test('that were not made cannot be followed: the first of them is named', async () => {
    const { run, effects, comparison } = recorded([{ tool: 'mail', input: 1 }])
    await expect(run('look', 2)).rejects.toThrow(new Unrecorded('the tool look was not called when the turn was recorded'))
    await expect(run('other', 2)).rejects.toThrow(Unrecorded)
    expect([effects.missing, effects.made]).toEqual(['the tool look was not called when the turn was recorded', 2])
    expect(comparison.divergences[0]).toEqual({
      span_id: 'turn',
      kind: 'effect',
      path: '',
      recorded: null,
      replayed: { tool: 'look', input: 2 },
    })
    const exact = recorded([{ tool: 'mail', input: 1 }], { exact: true })
    await expect(exact.run('mail', 2)).rejects.toThrow('the tool mail was not called with this input when the turn was recorded')
  })

  test('that failed before an effect began fail again, and are no calls', async () => {
    const failed = [
      { tool: 'mail', error: 'it must not be repeated', attempts: 1 },
      { tool: 'look', error: 'it ended so', attempts: 1 },
    ]
    const ended: Call[] = [
      { tool: 'look', input: 1, status: 'failed', error: 'it ended so' },
      { tool: 'find', input: 1 },
    ]
    const { run, effects, comparison } = recorded(ended, { failed })
    expect(['mail', 'look', 'write'].map((name) => effects.has(name))).toEqual([true, true, false])
    await expect(run('mail', 1)).rejects.toThrow('it must not be repeated')
    expect([effects.made, comparison.compared]).toEqual([0, 0])
    await expect(run('look', 1)).rejects.toThrow('it ended so')
    await expect(run('look', 1)).rejects.toThrow('the tool look was not called when the turn was recorded')
  })

  test('are those of this turn, without what the blackboard read', () => {
    const other = { tool: 'mail', input: 1, parent_id: 'another turn' }
    const { effects } = recorded([other, { tool: 'look', input: 1 }, { tool: 'read', input: 1 }], { probed: ['e2'], offered: ['write'] })
    expect(effects.recorded).toBe(1)
    expect(['write', 'look', 'mail', 'read'].map((name) => effects.has(name))).toEqual([true, true, false, false])
    const causes = [reads, { cause: { by: WRAPPED_CALLER } }, { cause: { by: 'turn' } }, { cause: { turn: 1 } }]
    expect(causes.map((started) => isProbe(part<Parameters<typeof isProbe>[0]>(started)))).toEqual([true, true, false, false])
  })

  test('that the replay did not make differ, and have their time', async () => {
    const { run, effects, comparison } = recorded([
      { tool: 'mail', input: 1 },
      { tool: 'mail', input: 2 },
      { tool: 'look', duration_ms: null },
    ])
    await run('mail', 1)
    expect(effects.unused_ms).toBe(10)
    effects.compareUnused()
    expect(comparison.divergences).toEqual([
      { span_id: 's1', kind: 'effect', path: '', recorded: { tool: 'mail', input: 2 }, replayed: null },
      { span_id: 's2', kind: 'effect', path: '', recorded: { tool: 'look', input: null }, replayed: null },
    ])
  })
})

describe('a tool of the agent', () => {
  const definition = defineTool({ description: '', input: z.object({ n: z.number().default(7) }), execute: () => Promise.resolve(null) })

  test('has its input parsed, as in the turn', async () => {
    const { run } = recorded([{ tool: 'mail', input: { n: 7 } }], { exact: true })
    expect(await run('mail', {}, definition)).toBe('output 0')
  })

  test('refuses a bad input before a call is made', async () => {
    const { run, effects } = recorded([{ tool: 'mail', input: { n: 7 } }])
    await expect(run('mail', { n: 'x' }, definition)).rejects.toThrow(/^tool mail was called with bad input: .*number/)
    expect(effects.made).toBe(0)
  })
})

test('other tools are offered by the names that models are shown, and call through', async () => {
  const { effects } = recorded([{ tool: 'mcp.docs.find', input: 1 }], { offered: ['http.mail'] })
  const calls: unknown[] = []
  const tools = effects.tools((name: string, input: unknown) => {
    calls.push([name, input])
    return Promise.resolve('done')
  })
  const names = Object.keys(tools)
  expect(names).toEqual(['http_mail', 'mcp_docs_find'])
  for (const name of names) await (tools[name] as unknown as { execute: (input: unknown) => Promise<unknown> }).execute({ to: 'ann' })
  expect(calls).toEqual([
    ['http.mail', { to: 'ann' }],
    ['mcp.docs.find', { to: 'ann' }],
  ])
  await effects.outside.ready()
  expect([effects.outside.available(), effects.outside.find('http.mail')]).toEqual([{}, null])
})

test('tools are offered with the descriptions and schemas that the models of this turn were shown', async () => {
  const shown = (name: string, description: string) => ({
    tools: [{ type: 'function', name, description, inputSchema: { type: 'object', properties: { to: { type: 'string' } } } }],
  })
  const entries = [
    { kind: 'model-called', span_id: 'm1', parent_id: 'turn', request: ['own', 'settings'] },
    { kind: 'model-called', span_id: 'm2', parent_id: 'turn' },
    { kind: 'model-called', span_id: 'm3', parent_id: 'another turn', request: ['foreign'] },
  ].map((entry) => part<LogEntry>(entry))
  const parts = { own: shown('http_mail', 'Sends mail'), settings: { temperature: 0 }, foreign: shown('write', 'Writes') }
  const source = new Source(part<ConstructorParameters<typeof Source>[0]>({ scope: 'a', events: [], entries, parts }))
  const more = { comparison: new Comparison(), clean: (value: unknown) => value, exact: false }
  const effects = new RecordedEffects(source, TURN, { offered: ['http.mail', 'write'], ...more })
  const { http_mail, write } = effects.tools(async () => null)
  expect(http_mail).toMatchObject({ description: 'Sends mail', inputSchema: { jsonSchema: { properties: { to: { type: 'string' } } } } })
  expect(write?.description).toBe('')
})

describe('a recording', () => {
  test('is replayed without its dry turns, and without what they asked and did', () => {
    const spans = [
      { kind: 'effect-started', span_id: 'own', parent_id: 'turn' },
      { kind: 'effect-started', span_id: 'asked', parent_id: 'dry' },
      { kind: 'effect-ended', span_id: 'within', parent_id: 'asked' },
      { kind: 'dry-turn-ended', span_id: 'dry', parent_id: 'turn' },
    ]
    const entries = spans.map((span) => part<LogEntry>(span))
    const source = new Source(part<ConstructorParameters<typeof Source>[0]>({ scope: 'a', events: [], entries }))
    expect(source.recording.entries.map(({ span_id }) => span_id)).toEqual(['own'])
  })

  test('keeps its masks where a replayed value is masked', () => {
    const mask = `sha256:${'a'.repeat(64)}`
    const clean = cleanerOf(
      (value) => value,
      (text) => `masked ${String(text)}`,
    )(part<Parameters<ReturnType<typeof cleanerOf>>[0]>({ redact: ['iban'] }))
    expect(clean({ iban: mask, token: 'DE1' })).toEqual({ iban: mask, token: 'masked DE1' })
  })
})
