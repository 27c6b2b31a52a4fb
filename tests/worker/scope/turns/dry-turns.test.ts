import { describe, expect, test } from 'vitest'
import type { AskedAgain } from '../../../../src/contract/feedback.ts'
import { did } from '../../../support/reflex-chain.ts'
import { entriesOf, freshScope, logOf, note, send, sendAndSettle, stubOf, textOf, until } from '../../../support/scopes.ts'
import { ask, behaviours, providers } from '../../../support/test-agents.ts'

const askAgain = async (scope: string, ...ids: string[]) => JSON.parse(await stubOf(scope).askAgain(ids)) as AskedAgain[]

describe('a dry turn', () => {
  test('gives the acts of the trigger as they would be, and carries out none of them', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (context, deps) => {
      await deps.call('act', { text: textOf(context.events[0] as never) })
      deps.reply('done')
      deps.stream('do')
      context.scratch['seen'] = context.events.length
      await deps.store.publish(note(scope, 'noise of its own', { id: 'published' }))
      return { acted: true }
    })
    const event = note(scope, 'n0')
    await sendAndSettle(stubOf(scope), event)
    const before = await logOf(stubOf(scope))
    const [answer] = await askAgain(scope, event.id)
    expect(answer).toMatchObject({
      ok: true,
      event_ids: [event.id],
      did: [
        { kind: 'tool', name: 'act', input: { text: 'n0' } },
        { kind: 'reply', input: { content: 'done' } },
        { kind: 'emit', name: 'test.note' },
      ],
      acts: [
        { act: 'call_tool', tool: 'act' },
        { act: 'reply', content: 'done' },
        { act: 'emit_event' },
        { act: 'set_scratch', key: 'seen', value: 1 },
      ],
    })
    expect(did(scope)).toEqual(['n0'])
    const later = (await logOf(stubOf(scope))).slice(before.length)
    expect(later).toMatchObject([{ kind: 'dry-turn-ended', why: 'asked-again', status: 'result', seq: answer?.ok && answer.log_seq }])
    expect((await stubOf(scope).state()).counters).toMatchObject({ turns: 1, effects: 1 })
    const [turn] = await entriesOf(stubOf(scope), 'turn-ended')
    expect(answer).toMatchObject({ acts: turn?.acts })
  })

  test('gives its acts without redacted values, also where others quote them', async () => {
    const scope = freshScope()
    await stubOf(scope).configure({ redact: ['text'] }, 'someone')
    behaviours.set(scope, async (_, deps) => {
      await deps.call('act', { text: 'hunter22' })
      deps.reply('it is hunter22')
      return null
    })
    const event = note(scope, 'n0')
    await sendAndSettle(stubOf(scope), event)
    const [answer] = await askAgain(scope, event.id)
    expect(answer).toMatchObject({
      ok: true,
      acts: [{ act: 'call_tool', tool: 'act' }, { act: 'reply' }],
      did: [{ name: 'act', input: { text: expect.stringMatching(/^sha256:/) } }, { kind: 'reply' }],
    })
    expect(JSON.stringify(answer)).not.toContain('hunter22')
  })

  test('sees the context, the notes and the time of the decision, and answers recorded calls as they were', async () => {
    const scope = freshScope()
    const saw: object[] = []
    behaviours.set(scope, async (context, deps) => {
      const done = deps.done('act_once', { text: 'x' })
      const output = await deps.call('act_once', { text: 'x' })
      const unkeyed = await deps.call('act', { text: 'y' })
      saw.push({
        texts: context.events.map(textOf),
        scratch: { ...context.scratch },
        minute: Math.floor(deps.now() / 60_000),
        done,
        output,
        unkeyed,
      })
      context.scratch['turns'] = saw.length
      return context.events.length > 1 ? 'cleared' : null
    })
    const events = ['n0', 'n1', 'n2'].map((text) => note(scope, text))
    for (const event of events) await sendAndSettle(stubOf(scope), event)
    const decided = [...saw]
    await askAgain(scope, ...events.slice(0, 2).map(({ id }) => id))
    expect(saw.slice(3)).toEqual(decided.slice(0, 2))
    expect((await stubOf(scope).context(10)).scratch).toEqual({ turns: 3 })
  })

  test('answers equal calls each as it was, and records those that were not made', async () => {
    const scope = freshScope()
    const saw: unknown[][] = []
    let times = 2
    behaviours.set(scope, async (_, deps) => {
      const outputs: unknown[] = []
      for (let at = 0; at < times; at += 1) outputs.push(await deps.call('act', { text: 'counted' }))
      saw.push(outputs)
      return null
    })
    const event = note(scope, 'n0')
    await sendAndSettle(stubOf(scope), event)
    times = 3
    await askAgain(scope, event.id)
    expect(saw).toMatchObject([
      [{ times: '1' }, { times: '2' }],
      [{ times: '1' }, { times: '2' }, { recorded: true }],
    ])
  })

  test('meters its model calls and logs them below its own span', async () => {
    const scope = freshScope()
    behaviours.set(scope, async (context, deps) => ({ said: await ask(deps, textOf(context.events[0] as never)) }))
    const event = note(scope, 'hello')
    await sendAndSettle(stubOf(scope), event)
    const [answer] = await askAgain(scope, event.id)
    expect(answer).toMatchObject({ ok: true, usage: { model_calls: 1 } })
    const [ended] = await entriesOf(stubOf(scope), 'dry-turn-ended')
    expect((await entriesOf(stubOf(scope), 'model-called')).at(-1)).toMatchObject({ parent_id: ended?.span_id, turn_id: ended?.turn_id })
    expect(ended).toMatchObject({ trace_id: event.meta.trace_id, event_ids: [event.id] })
    expect((await stubOf(scope).state()).counters.model_calls).toBe(2)
    await stubOf(scope).configure({ token_budget: { tokens: 1, per: 'total' } }, 'someone')
    expect(await askAgain(scope, event.id)).toMatchObject([{ ok: false, reason: 'later' }])
  })

  test('has no answer where the trigger uses a binding, another method or the claims of a consumer, even if it catches the error', async () => {
    const scope = freshScope()
    const event = note(scope, 'n0')
    const uses = [
      (deps: never) => (deps as { env: { SCOPE: object } }).env.SCOPE,
      (deps: never) => (deps as { db: D1Database }).db.prepare('DELETE FROM keys').run(),
      (deps: never) => (deps as { fetch: typeof fetch }).fetch('https://example.com', { method: 'POST' }),
    ]
    await sendAndSettle(stubOf(scope), event)
    for (const use of uses) {
      behaviours.set(scope, async (_, deps) =>
        (async () => use(deps as never))().then(
          () => null,
          () => null,
        ),
      )
      expect(await askAgain(scope, event.id)).toMatchObject([{ ok: false, reason: 'failed', detail: expect.stringContaining('may act') }])
    }
    behaviours.set(scope, async (_, deps) => deps.db.prepare('SELECT 1 AS one').first())
    expect(await askAgain(scope, event.id)).toMatchObject([{ ok: true }])
  })

  test('waits for no turn, and a turn does not wait for it', async () => {
    const scope = freshScope()
    const event = note(scope, 'n0')
    await sendAndSettle(stubOf(scope), event)
    const gate = Promise.withResolvers<null>()
    behaviours.set(scope, async (_, deps) => (deps.attempt === 1 && deps.context.events.length === 1 ? gate.promise : null))
    const asked = askAgain(scope, event.id)
    await sendAndSettle(stubOf(scope), note(scope, 'n1'))
    gate.resolve(null)
    expect(await asked).toMatchObject([{ ok: true, acts: [] }])
    const running = Promise.withResolvers<null>()
    behaviours.set(scope, async (context) => (context.events.length > 1 ? running.promise : null))
    await send(stubOf(scope), note(scope, 'n2'))
    await until(async () => (await stubOf(scope).state()).turn !== null, 'a turn runs')
    expect(await askAgain(scope, event.id)).toMatchObject([{ ok: true }])
    running.resolve(null)
  })

  test('says in words why an event has no answer', async () => {
    const scope = freshScope()
    const event = note(scope, 'noise')
    await sendAndSettle(stubOf(scope), event)
    expect(await askAgain(scope, event.id, 'never-sent')).toMatchObject([
      { ok: false, reason: 'undecided' },
      { ok: false, reason: 'unknown' },
    ])
  })

  test('that finds the model away is answered later, and the next turn waits for the model, too', async () => {
    const scope = freshScope()
    const event = note(scope, `away ${scope}`)
    behaviours.set(scope, async (context, deps) => ({ said: await ask(deps, textOf(context.events[0] as never)) }))
    await sendAndSettle(stubOf(scope), event)
    providers.set(`away ${scope}`, () => Object.assign(new Error('busy'), { name: 'AI_APICallError', statusCode: 503 }))
    expect(await askAgain(scope, event.id)).toMatchObject([{ ok: false, reason: 'later' }])
    expect((await stubOf(scope).state()).waiting_for_model).not.toBeNull()
  })
})
