import { afterEach, describe, expect, test } from 'vitest'
import type { SettingsPatch } from '../../../../src/contract/settings/settings.ts'
import { authorOf } from '../../../../src/features/decisions/agent/middle.ts'
import type { Span } from '../../../../src/contract/reports/trace.ts'
import { certify } from '../../../support/certificates.ts'
import { call } from '../../../support/http.ts'
import { outside } from '../../../support/mock-fetch.ts'
import { createVersion, replying } from '../../../support/reflexes.ts'
import { DECIDED, HOST } from '../../../support/scope-with-remote-tools.ts'
import { crash, entriesOf, freshScope, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { behaviours, effects } from '../../../support/test-agents.ts'

type Setting = NonNullable<SettingsPatch['decision_model']>
const setting = (fields: Partial<Setting> = {}): Setting => ({
  name: 'triage',
  model: 'system-one/jev',
  question: { type: 'choice', criteria: { act: 'Do it', ignore: 'Noise', ask: 'Unclear' } },
  actions: {
    act: { action_type: 'call_tool', tool: 'act_once', args: { text: '{{text}}' } },
    ignore: { action_type: 'ignore', reason: 'noise' },
  },
  threshold: 0.9,
  ...fields,
})
const answering = (choice: 'act' | 'ignore' | 'ask', probability = 0.95) => {
  const rest = (1 - probability) / 2
  const probabilities = { act: rest, ignore: rest, ask: rest, [choice]: probability }
  return Response.json({ answers: { triage: { type: 'choice', choice, probabilities } }, usage: { input_tokens: 10, output_tokens: 0 } })
}

let network: ReturnType<typeof outside> | undefined
afterEach(() => network?.restore())

/** A scope of the test agent, whose turns say what they saw. */
async function scopeWith(answer: (text: string) => Response | Promise<Response>, patch: SettingsPatch = {}) {
  const scope = freshScope(DECIDED)
  network = outside(HOST, ({ body }) => answer((JSON.parse(body) as { state: { event: { text: string } } }).state.event.text))
  behaviours.set(scope, async (context, deps) => (deps.reply(`thought about ${context.events.length}`), { seen: context.events.length }))
  const changed = await stubOf(scope).configure({ agent: 'test-agent', decision_model: setting(), ...patch }, 'a test')
  expect(changed).toMatchObject({ ok: true })
  return { scope, requests: network.requests }
}
const textsOf = (scope: string) => effects.filter((effect) => effect.scope === scope).map(({ text }) => text)

describe('a decision model between reflexes and turns', () => {
  test('acts where it is sure, through the effect lane, and no turn is started', async () => {
    const { scope, requests } = await scopeWith(() => answering('act'))
    const [record] = await sendAndSettle(stubOf(scope), note(scope, 'open'))
    expect(record).toMatchObject({ status: 'completed', outcome: { by: 'decision', action: { tool: 'act_once', args: { text: 'open' } } } })
    expect(textsOf(scope)).toEqual(['open'])
    expect(requests).toHaveLength(1)
    expect(await entriesOf(stubOf(scope), 'turn-started')).toEqual([])
    expect(await entriesOf(stubOf(scope), 'decision-made')).toMatchObject([
      {
        model: 'system-one/jev',
        status: 'ok',
        usage: { input_tokens: 10 },
        middle: { decision_id: 'decision:triage', score: 0.95, threshold: 0.9, action: { action_type: 'call_tool' }, left: null },
      },
    ])
    expect(await entriesOf(stubOf(scope), 'action-ended')).toMatchObject([{ reflex_id: 'decision:triage', status: 'ok' }])
  })

  test('says in its trace how sure it was, and why a turn decides', async () => {
    const { scope } = await scopeWith(() => answering('act', 0.8))
    const [record] = await sendAndSettle(stubOf(scope), note(scope, 'open'))
    const { body } = await call(`/v1/traces/${record?.event.meta.trace_id}?scope=${encodeURIComponent(scope)}`)
    const decision = (body.root.children as Span[]).find(({ name }) => name.startsWith('decide '))
    expect(decision?.attributes).toMatchObject({
      'reflex.decision.id': 'decision:triage',
      'reflex.decision.probability': 0.8,
      'reflex.decision.threshold': 0.9,
      'reflex.decision.left': 'threshold',
      'reflex.decision.detail': 'the probability is below 0.9',
    })
  })

  test('does nothing at once where the answer is to ignore', async () => {
    const { scope } = await scopeWith(() => answering('ignore'))
    expect(await sendAndSettle(stubOf(scope), note(scope, 'hum'))).toMatchObject([{ status: 'completed', outcome: { by: 'decision' } }])
    expect(await stubOf(scope).state()).toMatchObject({ counters: { turns: 0, reflex_actions: 1 }, context: { events: 1 } })
  })

  test.each<[string, () => Response, Partial<Setting>, string]>([
    ['is not sure', () => answering('act', 0.8), {}, 'threshold'],
    ['gives an answer without an action', () => answering('ask'), {}, 'no_action'],
    [
      'calls a tool that the scope does not have',
      () => answering('act'),
      { actions: { act: { action_type: 'call_tool', tool: 'none', args: {} } } },
      'refused',
    ],
    [
      'names a field that the event does not have',
      () => answering('act'),
      { actions: { act: { action_type: 'reply', content: '{{nothing}}' } } },
      'no_action',
    ],
    [
      'calls a tool whose effect can be neither undone nor repeated',
      () => answering('act'),
      { actions: { act: { action_type: 'call_tool', tool: 'act', args: { text: '{{text}}' } } } },
      'proof',
    ],
    ['is not available', () => new Response('busy', { status: 503 }), {}, 'failed'],
    ['answers with something else', () => Response.json({ answers: { triage: { type: 'noul', noul: 1 } } }), {}, 'failed'],
    ['was never proven', () => answering('act'), { threshold: undefined }, 'threshold'],
  ])('leaves the event to the turn if it %s', async (_what, answer, fields, left) => {
    const { threshold, ...rest } = { ...setting(), ...fields }
    const { scope } = await scopeWith(answer, { decision_model: threshold === undefined ? rest : { ...rest, threshold } })
    expect(await sendAndSettle(stubOf(scope), note(scope, 'open'))).toMatchObject([{ outcome: { by: 'turn', result: { seen: 1 } } }])
    expect(textsOf(scope)).toEqual([])
    expect(await entriesOf(stubOf(scope), 'decision-made')).toMatchObject([{ middle: { left } }])
  })

  test('makes such a call once its certificate says that a person allowed it, and a replay agrees in both cases', async () => {
    const decision_model = setting({ actions: { act: { action_type: 'call_tool', tool: 'act', args: { text: '{{text}}' } } } })
    const { scope } = await scopeWith(() => answering('act'), { decision_model, learning: { mode: 'auto', audit_share: 0 } })
    const replayed = async (trace_id = '') =>
      (await call(`/v1/traces/${trace_id}/replay?scope=${encodeURIComponent(scope)}`, { json: {} })).body
    const [left] = await sendAndSettle(stubOf(scope), note(scope, 'first'))
    expect(left).toMatchObject({ outcome: { by: 'turn' } })
    expect(await replayed(left?.event.meta.trace_id)).toMatchObject({ equivalent: true, changed: 0, unknown: [] })
    const [made] = await entriesOf(stubOf(scope), 'decision-made')
    await certify(scope, authorOf(decision_model, made?.middle?.version ?? 0, ''), {
      risk: 'final',
      act: 'act',
      person: 'ann',
      agent_version: 'test-agent beside system-one',
    })
    // An audit draws one act in twenty by the event's id. It does not draw this one.
    const [decided] = await sendAndSettle(stubOf(scope), note(scope, 'second', { id: 'second-1' }))
    expect(decided).toMatchObject({ outcome: { by: 'decision' } })
    expect(textsOf(scope)).toEqual(['second'])
    expect(await replayed(decided?.event.meta.trace_id)).toMatchObject({ equivalent: true, changed: 0, unknown: [] })
    const listed = async () => (await call('/v1/certificates?id=decision:triage')).body.items as { scope: string; why: string[] }[]
    await until(async () => (await listed()).some((proof) => proof.scope === scope), 'D1 has the certificate')
    expect((await listed()).find((proof) => proof.scope === scope)?.why).not.toEqual([])
  })

  test('is not asked where a reflex decides, nor about other types, nor once the budget is spent', async () => {
    const { id } = await createVersion({ code: replying('by reflex') })
    const first = await scopeWith(() => answering('act'), { reflexes: [{ id }] })
    expect(await sendAndSettle(stubOf(first.scope), note(first.scope, 'x'))).toMatchObject([{ outcome: { by: 'reflex' } }])
    expect(first.requests).toEqual([])
    network?.restore()
    const second = await scopeWith(() => answering('act'), { decision_model: setting({ types: ['ws.message'] }) })
    expect(await sendAndSettle(stubOf(second.scope), note(second.scope, 'x'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect(second.requests).toEqual([])
    network?.restore()
    const third = await scopeWith(() => answering('act'), { token_budget: { tokens: 0, per: 'day' } })
    expect(await sendAndSettle(stubOf(third.scope), note(third.scope, 'x'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect(third.requests).toEqual([])
  })

  test('blocks neither perceiving nor a turn while it is asked', async () => {
    const gate = Promise.withResolvers<void>()
    const { scope } = await scopeWith(async (text) => {
      if (text === 'slow') await gate.promise
      return answering(text === 'slow' ? 'ignore' : 'ask')
    })
    const [slow] = await send(stubOf(scope), note(scope, 'slow'))
    expect(await sendAndSettle(stubOf(scope), note(scope, 'next'))).toMatchObject([{ outcome: { by: 'turn', result: { seen: 2 } } }])
    expect(await stubOf(scope).event(slow ?? '')).toMatchObject({ status: 'processing' })
    gate.resolve()
    await stubOf(scope).outcomes([slow ?? ''], 5000)
    expect(await stubOf(scope).event(slow ?? '')).toMatchObject({ outcome: { by: 'decision' } })
  })

  test('is asked again after a crash, and acts once', async () => {
    const never = new Promise<Response>(() => {})
    let asked = 0
    const { scope } = await scopeWith(() => ((asked += 1) === 1 ? never : answering('act')))
    const [id] = await send(stubOf(scope), note(scope, 'once'))
    await until(async () => asked === 1, 'the model was asked')
    await (await crash(scope)).poke()
    expect(await stubOf(scope).outcomes([id ?? ''], 5000)).toMatchObject({ settled: true })
    expect(textsOf(scope)).toEqual(['once'])
    expect(await entriesOf(stubOf(scope), 'event-ended')).toHaveLength(1)
  })

  test('is replayed from its recorded answer, and a what-if names another threshold', async () => {
    const { scope } = await scopeWith(() => answering('act'))
    const [record] = await sendAndSettle(stubOf(scope), note(scope, 'open'))
    const replayed = async (json: object) =>
      (await call(`/v1/traces/${record?.event.meta.trace_id}/replay?scope=${encodeURIComponent(scope)}`, { json })).body
    expect(await replayed({})).toMatchObject({ equivalent: true, changed: 0, unknown: [] })
    expect(await replayed({ mode: 'what_if', changes: { settings: { decision_model: setting({ threshold: 0.99 }) } } })).toMatchObject({
      divergences: [expect.objectContaining({ kind: 'decision', path: '/left', recorded: null, replayed: 'threshold' })],
    })
  })
})

describe('its threshold', () => {
  test('is chosen from decisions of turns and proven on later ones; then it acts, until audits find that the turn has changed its mind', async () => {
    const { threshold: _none, ...proving } = setting({ actions: { ignore: { action_type: 'ignore', reason: 'a hum' } } })
    const { scope } = await scopeWith((text) => answering(text.startsWith('hum') ? 'ignore' : 'act', 0.97), {
      decision_model: proving,
      learning: { mode: 'auto', audit_share: 0 },
    })
    behaviours.set(scope, async (context, deps) => {
      const text = (context.events.at(-1) as { text?: string } | undefined)?.text ?? ''
      if (!text.startsWith('hum')) await deps.call('act_once', { text })
      return { text }
    })
    const by = async (text: string) => (await sendAndSettle(stubOf(scope), note(scope, text)))[0]?.outcome?.by
    const waiting = []
    for (let count = 0; count < 420; count += 1) {
      const decided = await by(`hum ${count}`)
      waiting.push(decided)
      if (decided === 'decision') break
    }
    expect(waiting.at(-1)).toBe('decision')
    expect(waiting.length).toBeGreaterThan(200)
    const changes = await entriesOf(stubOf(scope), 'certificate-changed')
    expect(changes.map(({ change, reflex_id }) => [change, reflex_id])).toEqual([
      ['issued', 'decision:triage'],
      ['proven', 'decision:triage'],
    ])
    // An audit leaves the decision to the turn, which has changed its mind.
    await stubOf(scope).configure({ learning: { audit_share: 1 } }, 'a test')
    behaviours.set(scope, async (_context, deps) => (deps.reply('hm'), { hm: true }))
    const drifted = async () => (await entriesOf(stubOf(scope), 'certificate-changed')).some(({ change }) => change === 'drifted')
    let audits = 0
    for (; audits < 50 && !(await drifted()); audits += 1) expect(await by(`hum again ${audits}`)).toBe('turn')
    expect(await drifted()).toBe(true)
    // The first audit disagrees: until the alarm, the decisions are compared.
    const made = (await entriesOf(stubOf(scope), 'decision-made')).slice(-audits)
    expect(made.map(({ middle }) => middle?.left)).toEqual(['audit', ...Array(audits - 1).fill('proof')])
    expect(made[1]?.middle?.detail).toContain('1 of 1 decisions since its proof disagreed')
    await stubOf(scope).configure({ learning: { audit_share: 0 } }, 'a test')
    expect(await by('hum after the drift')).toBe('turn')
    await stubOf(scope).configure({ decision_model: { ...proving, name: 'other' } }, 'a test')
    expect(await by('hum after')).toBe('turn')
  }, 120_000)
})
