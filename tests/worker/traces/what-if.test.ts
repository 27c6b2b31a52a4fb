import { describe, expect, test } from 'vitest'
import type { SettingsPatch } from '../../../src/contract/settings/settings.ts'
import { call } from '../../support/http.ts'
import { overlapping } from '../../support/overlap.ts'
import { createVersion, replying } from '../../support/reflexes.ts'
import { freshScope, logOf, note, stubOf } from '../../support/scopes.ts'
import { ask, behaviours, effects } from '../../support/test-agents.ts'
import { propose, skill, twoSteps } from '../../support/two-step-skill.ts'

const pathOf = (scope: string, trace_id: string) => `/v1/traces/${trace_id}/replay?scope=${encodeURIComponent(scope)}`
const asked = (scope: string, trace_id: string, changes: object, more: object = {}, key?: string) =>
  call(pathOf(scope, trace_id), { json: { mode: 'what_if', changes, ...more }, ...(key !== undefined && { key }) })
async function whatIf(...given: Parameters<typeof asked>) {
  const { status, body, text } = await asked(...given)
  expect({ status, text: status === 200 ? '' : text }).toEqual({ status: 200, text: '' })
  return body
}

async function accept(scope: string, text: string) {
  const event = note(scope, text)
  await stubOf(scope).accept([event], 'http')
  await stubOf(scope).outcomes([event.id], 15_000)
  return event.meta.trace_id
}
async function withReflex(code: string, patch: SettingsPatch = {}) {
  const scope = freshScope()
  const { id } = await createVersion({ code })
  await stubOf(scope).configure({ reflexes: [{ id }], ...patch }, 'a test')
  return { scope, id }
}
async function withOverlap(overlap: SettingsPatch['overlap']) {
  const scope = freshScope()
  behaviours.set(scope, async (_context, deps) => deps.call('act', { text: 'one' }))
  return { scope, ...(await overlapping(scope, overlap)) }
}
const nothing = 'function reflex(context) { return null }'
const calling = `function reflex({ event }) { return { action_type: 'call_tool', tool: 'act', args: { text: event.text } } }`
const unchanged = { equivalent: true, changed: 0, divergences: [], unknown: [], effects: [] }

describe('a what-if', () => {
  test('changes nothing where the changes do not matter', async () => {
    const { scope } = await withReflex(replying('hello'))
    const trace_id = await accept(scope, 'hi')
    const report = await whatIf(scope, trace_id, { settings: { tau: 0.9, overlap: 'interrupt' }, model: 'another' })
    expect(report).toMatchObject({ ...unchanged, mode: 'what_if', compared: 3 })
    expect(report.replayed).toEqual({ ...report.recorded, unanswered: 0 })
  })

  test('says what a reflex with other code would do, and which effects would not have been', async () => {
    const { scope, id } = await withReflex(calling)
    const trace_id = await accept(scope, 'hi')
    const report = await whatIf(scope, trace_id, { reflex_code: { [id]: replying('hello') } })
    expect(report).toMatchObject({ equivalent: false, compared: 2, changed: 1, unknown: [] })
    expect(report.divergences.map(({ kind }: { kind: string }) => kind)).toEqual(['reflex', 'reflex', 'reflex', 'reflex'])
    expect(report.effects).toMatchObject([
      { change: 'vanishes', act: 'call_tool', content: { tool: 'act', args: { text: 'hi' } } },
      { change: 'appears', act: 'reply', content: { content: 'hello' } },
    ])
    expect([report.recorded.effects, report.replayed.effects]).toEqual([1, 0])
    expect(effects.filter((effect) => effect.scope === scope)).toHaveLength(1)
  })

  test('does not start the turn of an event that a reflex would answer, and saves its model calls', async () => {
    const { scope, id } = await withReflex(nothing)
    behaviours.set(scope, async (_context, deps) => ({ said: await ask(deps, 'hello'), did: await deps.call('act', { text: 'one' }) }))
    const trace_id = await accept(scope, 'hi')
    const report = await whatIf(scope, trace_id, { reflex_code: { [id]: replying('hello') } })
    expect(report.divergences).toContainEqual(expect.objectContaining({ kind: 'turn', recorded: 'started', replayed: 'not started' }))
    expect(report.effects).toMatchObject([
      { change: 'appears', act: 'reply' },
      { change: 'vanishes', act: 'call_tool', content: { tool: 'act', input: { text: 'one' } } },
    ])
    expect(report.recorded).toMatchObject({ effects: 1, usage: { model_calls: 1 } })
    expect(report.replayed).toMatchObject({ effects: 0, usage: { model_calls: 0, input_tokens: 0, output_tokens: 0 }, unanswered: 0 })
    expect(report.replayed.duration_ms).toBeLessThan(report.recorded.duration_ms)
  })

  test('does not know the turn of an event that a reflex would no longer answer', async () => {
    const { scope, id } = await withReflex(replying('hello'))
    const trace_id = await accept(scope, 'hi')
    const report = await whatIf(scope, trace_id, { reflex_code: { [id]: nothing } })
    expect(report.effects).toMatchObject([{ change: 'vanishes', act: 'reply' }])
    expect(report.unknown).toMatchObject([{ kind: 'turn', reason: expect.stringContaining('a turn would consider this event') }])
  })

  test('runs a reflex of the registry that the recorded chain did not have', async () => {
    const { scope, id } = await withReflex(nothing)
    const other = await createVersion({ code: replying('from the registry') })
    const trace_id = await accept(scope, 'hi')
    const report = await whatIf(scope, trace_id, { reflexes: [{ id }, { id: other.id }] })
    expect(report.effects).toMatchObject([{ change: 'appears', act: 'reply', content: { content: 'from the registry' } }])
    const absent = await whatIf(scope, trace_id, { reflexes: [{ id: 'nobody-wrote-it' }] })
    expect(absent.unknown).toMatchObject([{ kind: 'reflex', reason: expect.stringContaining('nobody-wrote-it') }])
  })

  test('shows a first reflex the context of an event on which none ran', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_context, deps) => ({ said: await ask(deps, 'hello') }))
    await accept(scope, 'before')
    const trace_id = await accept(scope, 'hi')
    const code = `function reflex(context) {
      const { event, window, recent_events } = context
      if (event.text !== 'hi' || window['1m'].total !== 2 || recent_events.length !== 2) return null
      return { action_type: 'reply', content: 'hello' }
    }`
    const changes = { reflexes: [{ id: 'first' }], reflex_code: { first: code } }
    const report = await whatIf(scope, trace_id, changes)
    expect(report).toMatchObject({ unknown: [], effects: [{ change: 'appears', act: 'reply' }], replayed: { usage: { model_calls: 0 } } })
    const { body } = await call(`/v1/scopes/${encodeURIComponent(scope)}/replay`, {
      json: { since: '2020-01-01T00:00:00Z', mode: 'what_if', changes },
    })
    expect(body).toMatchObject({ events: 2, unknown: 0, effects: { appear: 1, vanish: 0 }, replayed: { usage: { model_calls: 1 } } })
  })

  test('shows the message that other instructions change, and asks the model only within a budget', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ agent: 'prompted', instructions: 'Answer in one line.' }, 'a test')
    const trace_id = await accept(scope, 'hi')
    const changes = { instructions: 'Answer in two lines.' }
    const closed = await whatIf(scope, trace_id, changes)
    expect(closed.divergences).toMatchObject([
      {
        kind: 'model',
        path: '/prompt/0',
        recorded: { role: 'system' },
        replayed: { role: 'system', content: expect.stringContaining('two lines') },
      },
    ])
    expect(closed.unknown).toMatchObject([{ kind: 'turn', reason: expect.stringContaining('budget') }])
    expect(closed.replayed).toMatchObject({ unanswered: 1, usage: { model_calls: 0 } })
    const open = await whatIf(scope, trace_id, changes, { budget: { calls: 1 } })
    expect(open).toMatchObject({ spent: { calls: 1, usd: 0 }, unknown: [], replayed: { unanswered: 0, usage: { model_calls: 1 } } })
  })

  test('ends a branch as unknown where a tool was not called with this input', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_context, deps) => deps.call('act', { text: deps.settings.parameters['text'] === 'two' ? 'two' : 'one' }))
    const trace_id = await accept(scope, 'hi')
    const report = await whatIf(scope, trace_id, { settings: { parameters: { text: 'two' } } })
    expect(report.effects).toMatchObject([{ change: 'appears', content: { tool: 'act', input: { text: 'two' } } }])
    expect(report.unknown).toMatchObject([{ kind: 'turn', reason: expect.stringContaining('not called with this input') }])
    expect(effects.filter((effect) => effect.scope === scope)).toMatchObject([{ text: 'one' }])
  })

  test('does not know the answers of another model, and asks none for what is recorded', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (_context, deps) => ({ first: await ask(deps, 'one'), second: await ask(deps, 'two') }))
    const trace_id = await accept(scope, 'hi')
    const unasked = await whatIf(scope, trace_id, { model: 'openai-compatible/another' })
    expect(unasked.divergences).toMatchObject([{ kind: 'model', path: '/model', recorded: 'offline' }])
    expect(unasked).toMatchObject({ unknown: [{ kind: 'turn' }], replayed: { unanswered: 1 } })
    expect(unasked.spent).toBeUndefined()
    const one = await whatIf(scope, trace_id, { settings: { redact: ['said'] }, model: 'offline' }, { budget: { calls: 1 } })
    expect(one).toMatchObject({ ...unchanged, spent: { calls: 0 } })
  })

  test.each([
    ['queue', 'drop', { recorded: 'waits', replayed: 'dropped' }, { turns: 1, reasons: [] }],
    [
      'queue',
      'interrupt',
      { recorded: 'waits', replayed: 'interrupts' },
      { turns: 0, reasons: [expect.stringContaining('at another time')] },
    ],
    [
      'drop',
      'queue',
      { recorded: 'dropped', replayed: 'waits' },
      { turns: 0, reasons: [expect.stringContaining('a turn would consider this event')] },
    ],
    [
      'interrupt',
      'drop',
      { recorded: 'interrupts', replayed: 'dropped' },
      { turns: 0, reasons: [expect.stringContaining('at another time')] },
    ],
  ] as const)('shows the events that another overlap policy treats otherwise: %s, then %s', async (was, now, difference, follows) => {
    const { scope, second } = await withOverlap(was)
    const [same, report] = [
      await whatIf(scope, second, { settings: { overlap: was } }),
      await whatIf(scope, second, { settings: { overlap: now } }),
    ]
    expect(same.divergences).toEqual([])
    const of = (kind: string) => report.divergences.filter((one: { kind: string }) => one.kind === kind)
    expect(of('overlap')).toMatchObject([{ path: '', ...difference }])
    const reasons = [...new Set(report.unknown.map(({ reason }: { reason: string }) => reason))]
    expect({ turns: of('turn').length, reasons }).toEqual(follows)
  })

  test('does not know the turn that another overlap policy would have interrupted', async () => {
    const { scope, first } = await withOverlap('queue')
    const { body } = await call(`/v1/scopes/${encodeURIComponent(scope)}/replay`, {
      json: { since: '2020-01-01T00:00:00Z', mode: 'what_if', changes: { settings: { overlap: 'interrupt' } } },
    })
    expect(body.decisions).toMatchObject({ overlap: { same: 0, changed: 1, unknown: 0 }, turn: { same: 0, changed: 0, unknown: 2 } })
    expect(body.examples).toMatchObject([{ kind: 'overlap', alike: 1 }])
    const alone = await whatIf(scope, first, { settings: { overlap: { debounce: { quiet_ms: 20, max_ms: 100 } } } })
    expect(alone.divergences).toMatchObject([{ kind: 'overlap', recorded: 'starts', replayed: 'debounced' }])
    expect(alone.unknown).toMatchObject([{ kind: 'turn', reason: expect.stringContaining('at another time') }])
  })

  test('takes an exported file, also a large and compressed one', async () => {
    const { scope, id } = await withReflex(replying('hello'))
    const trace_id = await accept(scope, 'hi')
    const { body: recording } = await call(`/v1/traces/${trace_id}/export?scope=${encodeURIComponent(scope)}`)
    const json = { recording, mode: 'what_if', changes: { reflex_code: { [id]: replying('bye') } } }
    expect((await call('/v1/replay', { json })).body).toMatchObject({ mode: 'what_if', equivalent: false, effects: [{}, {}] })
    const zipped = (text: string) => new Response(text).body?.pipeThrough(new CompressionStream('gzip'))
    const send = async (text: string) => {
      const body = await new Response(zipped(text)).arrayBuffer()
      return call('/v1/replay', { body, type: 'application/json', headers: { 'Content-Encoding': 'gzip' } })
    }
    expect(await send(JSON.stringify(json) + ' '.repeat(2_000_000))).toMatchObject({ status: 200, body: { equivalent: false } })
    expect(await send(' '.repeat(11_000_000))).toMatchObject({ status: 413 })
    const torn = await call('/v1/replay', { body: 'not gzip', headers: { 'Content-Encoding': 'gzip' } })
    expect(torn).toMatchObject({ status: 400 })
  })

  test('needs changes, knows their names, and lets only an operator spend', async () => {
    const { scope } = await withReflex(replying('hello'))
    const trace_id = await accept(scope, 'hi')
    const bad = async (json: object) => (await call(pathOf(scope, trace_id), { json })).status
    expect(await bad({ mode: 'what_if' })).toBe(400)
    expect(await bad({ mode: 'what_if', changes: {} })).toBe(400)
    expect(await bad({ mode: 'what_if', changes: { settigns: {} } })).toBe(400)
    expect(await bad({ mode: 'what_if', changes: { reflex_code: { x: 'not a function(' } } })).toBe(400)
    expect(await bad({ mode: 'what_if', changes: { manifest: { id: 'x' } } })).toBe(400)
    expect(await bad({ mode: 'what_if', changes: { manifest: [twoSteps('x'), twoSteps('x')] } })).toBe(400)
    expect(await bad({ mode: 'pinned', changes: { model: 'x' } })).toBe(400)
    const { body } = await call('/v1/keys', { json: { name: 'a viewer', roles: ['viewer'], scopes: ['*'] } })
    expect(await asked(scope, trace_id, { model: 'offline' }, { budget: { calls: 1 } }, body.key)).toMatchObject({ status: 403 })
    expect(await asked(scope, trace_id, { model: 'offline' }, {}, body.key)).toMatchObject({ status: 200 })
  })

  test('refuses a skill where a raised tau is out of reach, and allows it where a raised one is not', async () => {
    const scope = freshScope()
    const { tau: _tau, ...activation } = twoSteps('x').activation
    const id = await skill({ activation })
    await stubOf(scope).configure({ tau: 0.3 }, 'a test')
    await propose(scope, id)
    const trace_id = (await logOf(stubOf(scope))).find(({ kind }) => kind === 'skill-decided')?.trace_id ?? ''
    const raised = await whatIf(scope, trace_id, { settings: { tau: 0.9 } })
    expect(raised.divergences).toContainEqual(
      expect.objectContaining({ kind: 'gate', path: '/verdict', recorded: 'allow', replayed: 'refused' }),
    )
    expect(raised.effects).toMatchObject([
      { change: 'vanishes', content: { tool: 'act', input: { text: 'first x' } } },
      { change: 'vanishes', content: { tool: 'act', input: { text: 'second x' } } },
    ])
    expect([raised.recorded.effects, raised.replayed.effects]).toEqual([2, 0])
    expect(await whatIf(scope, trace_id, { settings: { tau: 0.31 } })).toMatchObject(unchanged)
    const manifest = { ...twoSteps(id), version: '2.0.0', policy: { allow_roles: ['nobody'] } }
    const unconcerned = { ...twoSteps('not-recorded'), policy: { allow_roles: ['nobody'] } }
    expect(await whatIf(scope, trace_id, { manifest: [unconcerned] })).toMatchObject(unchanged)
    const denied = await whatIf(scope, trace_id, { manifest: [unconcerned, manifest] })
    expect(denied.divergences).toContainEqual(
      expect.objectContaining({ kind: 'gate', path: '/verdict', recorded: 'allow', replayed: 'deny' }),
    )
    expect(denied.divergences.map(({ path }: { path: string }) => path)).not.toContain('/version')
    const { plan } = twoSteps(id)
    const steps = plan.steps.map((step, index) => (index === 0 ? step : { ...step, args: { text: 'another' } }))
    const otherwise = await whatIf(scope, trace_id, { manifest: { ...twoSteps(id), plan: { ...plan, steps } } })
    expect(otherwise.effects).toMatchObject([
      { change: 'vanishes', content: { input: { text: 'second x' } } },
      { change: 'appears', content: { input: { text: 'another' } } },
    ])
    expect(otherwise.unknown.at(-1)).toMatchObject({ reason: expect.stringContaining('not called with this input') })
  })

  test('gives no keyed hash of a value that the changed code chose', async () => {
    const { scope, id } = await withReflex(replying('hello'))
    const trace_id = await accept(scope, 'hi')
    const code = `function reflex(context) { return { action_type: 'set_scratch', key: 'k', value: { password: 'guess' } } }`
    const report = JSON.stringify(await whatIf(scope, trace_id, { reflex_code: { [id]: code } }))
    expect(report).toContain('[redacted]')
    expect(report).not.toMatch(/sha256:|guess/)
  })
})
