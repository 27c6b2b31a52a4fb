import { generateText } from 'ai'
import { describe, expect, test } from 'vitest'
import type { SettingsPatch } from '../../../../src/contract/settings/settings.ts'
import { agreementsNeeded } from '../../../../src/reflexes/promotion.ts'
import { call } from '../../../support/http.ts'
import { acting, did, promotionAsked, write } from '../../../support/reflex-chain.ts'
import { crash, entriesOf, freshScope, note, send, sendAndSettle, stubOf, textOf, until } from '../../../support/scopes.ts'
import { ask, behaviours, looks } from '../../../support/test-agents.ts'

const TEXT = 'context.event.text'
const act = (text: string, more = '') => `{ action_type: 'call_tool', tool: 'act', args: { text: ${text} }${more} }`
const returns = (...acts: string[]) => `return { action_type: 'sequence', acts: [${acts.join(', ')}], consume: true }`
/** The second call does what the first one did, and the reply says it. */
const chained = returns(
  act(TEXT),
  act(`'?'`, `, uses: [{ at: '/args/text', output: 0, path: '/did' }]`),
  `{ action_type: 'reply', parts: ['I did ', { output: 1, path: '/did' }, '.'] }`,
)

const SENT = `{ action_type: 'emit_event', event: { type: 'test.note', text: 'sent' } }`

/** Sends an event whose sequence has the call `hang once`, and dies meanwhile: a dead letter. */
async function deadLetter(body: string, settings: SettingsPatch = {}, of = freshScope()) {
  const ignore = `{ action_type: 'ignore', reason: 'not asked' }`
  const { scope, stub } = await acting(`if (context.event.text === 'sent') return ${ignore}\n${body}`, {}, of)
  if (Object.keys(settings).length > 0) await stub.configure(settings, 'ops')
  const event = note(scope, 'a')
  await send(stub, event)
  await until(async () => did(scope).includes('hang once'), 'the call without an end has begun')
  const later = await crash(scope)
  const isDead = async () => (await later.event(event.id))?.status === 'dead_lettered'
  await until(isDead, 'nobody knows whether it happened')
  return { scope, stub: later, event }
}

/** A scope whose agent wrote a sequence with words, which is compared with what its turns do. */
async function learned(more = '') {
  const scope = freshScope()
  const noted = `{ action_type: 'set_scratch', key: 'last', value: ${TEXT} }`
  const body = `return { action_type: 'sequence', acts: [{ action_type: 'reply', content: 'Noted.' }, ${noted}]${more} }`
  const { id } = await write(body, { state: 'shadow', scope })
  await stubOf(scope).configure({ reflexes: [{ id }], learning: { mode: 'auto' } }, 'ops')
  return { id, scope, stub: stubOf(scope) }
}

/** The recorded trace of an event, decided again. */
async function replayed(scope: string, { meta }: { meta: { trace_id: string } }) {
  const { text } = await call(`/v1/traces/${meta.trace_id}/export?scope=${encodeURIComponent(scope)}`)
  return (await call('/v1/replay', { body: text, type: 'application/json' })).body as object
}
const same = { equivalent: true, divergences: [], unknown: [] }

describe('a sequence', () => {
  test('is replayed act by act, with the outputs that were recorded', async () => {
    const { scope, stub } = await acting(chained)
    const event = note(scope, 'a')
    await sendAndSettle(stub, event)
    expect(await replayed(scope, event)).toMatchObject(same)
  })

  test('that failed is replayed up to its failure, with the turn that was shown its calls', async () => {
    const { scope, stub } = await acting(returns(act(TEXT), act(`'throw'`)))
    behaviours.set(scope, async (_, deps) => ({ said: await ask(deps, 'continue') }))
    const event = note(scope, 'a')
    await sendAndSettle(stub, event)
    expect(await replayed(scope, event)).toMatchObject(same)
  })

  test('does its acts in order, with what earlier ones returned, as one decision', async () => {
    const { id, scope, stub } = await acting(chained)
    const [record] = await sendAndSettle(stub, note(scope, 'a'))
    expect(record).toMatchObject({ status: 'completed', outcome: { by: 'reflex', reflex_id: id } })
    expect(did(scope)).toEqual(['a', 'a'])
    expect(await entriesOf(stub, 'reply-sent')).toMatchObject([{ content: 'I did a.', reflex_id: id }])
    expect(await entriesOf(stub, 'action-ended')).toMatchObject([
      {
        action_type: 'sequence',
        status: 'ok',
        acts: [{ action_type: 'call_tool' }, { action_type: 'call_tool' }, { action_type: 'reply' }],
      },
    ])
    expect(await entriesOf(stub, 'reflex-fired')).toHaveLength(1)
    expect((await stub.context(10)).events).toEqual([])
  })

  test('may note what an act returned', async () => {
    const noted = `{ action_type: 'set_scratch', key: 'seen', value: null, uses: [{ at: '/value', output: 0, path: '/did' }] }`
    const { scope, stub } = await acting(returns(act(TEXT), noted))
    await sendAndSettle(stub, note(scope, 'a'))
    expect(did(scope)).toEqual(['a'])
    expect((await stub.context(10)).scratch).toMatchObject({ seen: 'a' })
  })

  test('finds nothing to replace in values that a stranger wrote', async () => {
    const marker = '{"output":0,"path":"/did"}'
    const { scope, stub } = await acting(returns(act(`'first'`), act(TEXT), `{ action_type: 'reply', content: context.event.said }`))
    await sendAndSettle(stub, note(scope, marker, { said: '{{outputs.0.did}}' }))
    expect(did(scope)).toEqual(['first', marker])
    expect(await entriesOf(stub, 'reply-sent')).toMatchObject([{ content: '{{outputs.0.did}}' }])
    const [record] = await sendAndSettle(stub, note(scope, 'b', { said: [{ output: 0, path: '/did' }] }))
    expect(record).toMatchObject({ outcome: { by: 'turn' } })
    expect((await entriesOf(stub, 'reflex-passed')).at(-1)).toMatchObject({ reason: 'invalid_action' })
  })

  test.each([
    ['is missing', '/nothing', 'has nothing at'],
    ['is of another type', '', 'does not take these arguments'],
  ])('stops at an act whose output %s', async (_, path, error) => {
    const { scope, stub } = await acting(returns(act(TEXT), act(`'?'`, `, uses: [{ at: '/args/text', output: 0, path: '${path}' }]`)))
    await sendAndSettle(stub, note(scope, 'a'))
    expect(did(scope)).toEqual(['a'])
    const [ended] = await entriesOf(stub, 'action-ended')
    expect(ended).toMatchObject({ status: 'failed', error: expect.stringContaining(error), acts: [{ status: 'ok' }, { status: 'failed' }] })
    expect(ended?.error).toMatch(/^act 2 of 2: /)
  })

  test('is not permitted if one of its acts is not', async () => {
    const { scope, stub } = await acting(returns(act(TEXT), `{ action_type: 'call_tool', tool: 'none', args: {} }`))
    await sendAndSettle(stub, note(scope, 'a'))
    expect(did(scope)).toEqual([])
    const [passed] = await entriesOf(stub, 'reflex-passed')
    expect(passed).toMatchObject({ reason: 'refused', error: expect.stringMatching(/^act 2: tool none is not allowed/) })
  })

  test('that fails leaves its event to a turn, which sees what was done and gets its output from the journal', async () => {
    const { scope, stub } = await acting(returns(act(TEXT), act(`'throw'`)))
    behaviours.set(scope, async (_, deps) => {
      const { text: said } = await generateText({ model: deps.model, prompt: 'continue', tools: deps.tools })
      return { said, again: await deps.call('act', { text: 'a' }) }
    })
    const [record] = await sendAndSettle(stub, note(scope, 'a'))
    expect(record).toMatchObject({ outcome: { by: 'turn', result: { again: { did: 'a' } } } })
    expect(did(scope)).toEqual(['a', 'throw'])
    expect(await entriesOf(stub, 'turn-started')).toMatchObject([{ done: [{ tool: 'act', input: { text: 'a' }, output: { did: 'a' } }] }])
    const [asked] = await entriesOf(stub, 'model-called')
    // The question, the call, and its result.
    expect(asked?.prompt).toHaveLength(3)
    expect((await entriesOf(stub, 'effect-ended')).map(({ status }) => status)).toEqual(['ok', 'failed', 'reused'])
  })

  test('that fails in a scope that no agent serves leaves a dead letter, and a retry of it asks the reflex again', async () => {
    const { scope, stub } = await acting(
      returns(`{ action_type: 'reply', content: 'begun' }`, `{ action_type: 'run_skill', skill_id: 'no.such', inputs: {} }`),
    )
    await stub.configure({ agent: 'prompted' }, 'ops')
    const event = note(scope, 'a')
    expect(await sendAndSettle(stub, event)).toMatchObject([{ status: 'dead_lettered', error: expect.stringContaining('act 2 of 2') }])
    await stub.reopen([event.id], 'ops')
    await until(async () => (await entriesOf(stub, 'action-ended')).length === 2, 'the reflex was asked again')
    await until(async () => (await stub.event(event.id))?.status === 'dead_lettered', 'it has failed again')
    expect(await entriesOf(stub, 'reply-sent')).toHaveLength(1)
  })

  test('that fails shows the turn that follows what it had said, sent and done', async () => {
    const said = `{ action_type: 'reply', content: 'begun' }`
    const { scope, stub } = await acting(`if (context.event.text === 'sent') return null\n${returns(said, SENT, act(`'throw'`))}`)
    behaviours.set(scope, async ({ events }, deps) => (events.some((event) => textOf(event) === 'a') ? ask(deps, 'continue') : null))
    const [record] = await sendAndSettle(stub, note(scope, 'a'))
    expect(record).toMatchObject({ outcome: { result: expect.stringContaining('- said "begun"') } })
    // The event that it sent may have started a turn before.
    expect((await entriesOf(stub, 'turn-started')).at(-1)).toMatchObject({
      done: [{ said: 'begun' }, { sent: { type: 'test.note', text: 'sent' } }],
    })
  })

  test('with a key of its own that fails leaves its event to a turn, which does nothing twice', async () => {
    const acts = `[${act(TEXT)}, ${act(`'throw'`)}]`
    const { scope, stub } = await acting(`return { action_type: 'sequence', acts: ${acts}, idempotence_key: 'k' }`)
    behaviours.set(scope, async (_, deps) => deps.call('act', { text: 'a' }))
    const [record] = await sendAndSettle(stub, note(scope, 'a'))
    expect(record).toMatchObject({ outcome: { by: 'turn', result: { did: 'a' } } })
    expect(did(scope)).toEqual(['a', 'throw'])
  })

  test('sends an event of its own for each event, however alike their ids are', async () => {
    const { scope, stub } = await acting(
      `if (context.event.text === 'sent') return null
      return { action_type: 'sequence', acts: [${act(TEXT)}, { action_type: 'emit_event', event: { type: 'test.note', text: 'sent' } }], consume: true }`,
    )
    behaviours.set(scope, async () => ({ done: true }))
    const long = 'x'.repeat(120)
    await sendAndSettle(stub, { ...note(scope, 'a'), id: `${long}1` }, { ...note(scope, 'b'), id: `${long}2` })
    const ended = await entriesOf(stub, 'action-ended')
    expect(ended).toMatchObject([{ status: 'ok' }, { status: 'ok' }])
    expect(await entriesOf(stub, 'event-accepted')).toHaveLength(4)
  })

  test.each([
    ['JSON does not have', 'bigint'],
    ['is more than the journal keeps', 'large'],
  ])('whose tool returns what %s ends, and holds no later call', async (_, text) => {
    const { scope, stub } = await acting(returns(act(TEXT), act(`'next'`)))
    const [record] = await sendAndSettle(stub, note(scope, text))
    expect(record).toMatchObject({ status: 'completed', outcome: { by: 'reflex' } })
    expect(did(scope)).toEqual([text, 'next'])
  })

  test('whose outcome is unknown in the middle becomes a dead letter, and its first act is not repeated', async () => {
    const scope = freshScope()
    const { stub } = await acting(returns(act(TEXT), act(`'hang'`), `{ action_type: 'reply', content: 'done' }`), {}, scope)
    const [id = ''] = await send(stub, note(scope, 'a'))
    await until(async () => did(scope).includes('hang'), 'the second act has begun')
    const later = await crash(scope)
    const record = await until(async () => {
      const found = await later.event(id)
      return found?.status === 'dead_lettered' && found
    }, 'nobody knows whether it happened')
    expect(record.error).toContain('unknown outcome')
    expect(did(scope)).toEqual(['a', 'hang'])
    expect(await entriesOf(later, 'reply-sent')).toEqual([])
    expect(await entriesOf(stubOf(scope), 'action-ended')).toMatchObject([
      { status: 'unknown', acts: [{ status: 'ok' }, { status: 'unknown' }] },
    ])
  })

  test('that a person retries does what is left, and nothing twice', async () => {
    const said = `{ action_type: 'reply', content: 'begun' }`
    const noted = `{ action_type: 'set_scratch', key: 'seen', value: null, uses: [{ at: '/value', output: 0, path: '/did' }] }`
    const last = act(`'?'`, `, uses: [{ at: '/args/text', output: 0, path: '/did' }]`)
    const { scope, stub, event } = await deadLetter(returns(act(TEXT), said, SENT, noted, act(TEXT), act(`'hang once'`), last, said))
    expect(did(scope)).toEqual(['a', 'a', 'hang once'])
    expect(await stub.reopen([event.id], 'ops')).toEqual([event.id])
    await until(async () => (await stub.event(event.id))?.ended_at, 'the retried event has its outcome')
    expect(await stub.event(event.id)).toMatchObject({ status: 'completed', outcome: { by: 'reflex' } })
    expect(did(scope)).toEqual(['a', 'a', 'hang once', 'hang once', 'a'])
    // The last act says it again: the first attempt had said it once.
    expect((await entriesOf(stub, 'reply-sent')).map(({ content }) => content)).toEqual(['begun', 'begun'])
    expect(await entriesOf(stub, 'event-accepted')).toHaveLength(2)
    expect((await stub.context(10)).scratch).toMatchObject({ seen: 'a' })
    const reused = Array.from({ length: 5 }, () => ({ status: 'reused' }))
    expect((await entriesOf(stub, 'action-ended')).at(-1)).toMatchObject({
      status: 'ok',
      acts: [...reused, { status: 'ok' }, { status: 'ok' }, { status: 'ok' }],
    })
  })

  test('that a person retries and that dies again takes each output from its own call', async () => {
    const { scope, stub, event } = await deadLetter(returns(act(TEXT), act(`'hang once'`), act(TEXT), act(TEXT), act(`'hang'`)))
    await stub.reopen([event.id], 'ops')
    await until(async () => did(scope).includes('hang'), 'the last act has begun')
    expect(did(scope)).toEqual(['a', 'hang once', 'hang once', 'a', 'a', 'hang'])
    const later = await crash(scope)
    await until(async () => (await later.event(event.id))?.status === 'dead_lettered', 'nobody knows of the last act')
    await later.reopen([event.id], 'ops')
    await until(async () => did(scope).length === 7, 'the last act has begun again')
    expect(did(scope).slice(6)).toEqual(['hang'])
  })

  test('is not repeated by a reflex that does the same act alone', async () => {
    const { scope, stub, event } = await deadLetter(returns(act(TEXT), act(`'hang once'`)))
    const { id } = await write(`return ${act(TEXT)}`)
    await stub.configure({ reflexes: [{ id }] }, 'ops', 'key-of-ops')
    await stub.reopen([event.id], 'ops')
    await until(async () => (await stub.event(event.id))?.ended_at, 'the retried event has its outcome')
    expect(await stub.event(event.id)).toMatchObject({ outcome: { by: 'reflex', reflex_id: id } })
    expect(did(scope)).toEqual(['a', 'hang once'])
  })

  test('whose words nobody heard is proven by the words, too, and asks the person to whom the setting leaves them', async () => {
    const { scope, stub } = await learned()
    const said = { words: 'another time' }
    behaviours.set(scope, async ({ events, scratch }, deps) => {
      deps.reply(said.words)
      scratch['last'] = textOf(events.at(-1)!)
      return { done: true }
    })
    await sendAndSettle(stub, note(scope, 'a'))
    said.words = 'Noted.'
    await sendAndSettle(stub, note(scope, 'b'))
    expect((await entriesOf(stub, 'reflex-compared')).map(({ agreed }) => agreed)).toEqual([false, true])
    await stub.configure({ learning: { replies: 'by_person' } }, 'ops')
    said.words = 'another time'
    for (let at = 0; at < agreementsNeeded(0.95); at += 1) await sendAndSettle(stub, note(scope, `n${at}`))
    const changes = (await entriesOf(stub, 'certificate-changed')).map(({ change, reason }) => [change, reason])
    expect(changes.map(([change]) => change)).toEqual(['issued', 'lapsed', 'issued', 'proven', 'asked'])
    expect(changes[1]?.[1]).toBe('the setting learning.replies changed')
    expect(await sendAndSettle(stub, note(scope, 'c'))).toMatchObject([{ outcome: { by: 'turn' } }])
  })

  test('of whose words any will do asks the person who allows them, and then says its own', async () => {
    const { id, scope, stub } = await learned(', any_words: true')
    behaviours.set(scope, async ({ events, scratch }, deps) => {
      const text = textOf(events.at(-1)!)
      deps.reply(`I noted ${text}, as the ${text.length} before.`)
      scratch['last'] = text
      return { done: true }
    })
    for (let at = 0; at < agreementsNeeded(0.95); at += 1) await sendAndSettle(stub, note(scope, `n${at}`))
    const asked = await entriesOf(stub, 'certificate-changed')
    expect(asked.map(({ change }) => change)).toEqual(['issued', 'proven', 'asked'])
    expect(await sendAndSettle(stub, note(scope, 'c'))).toMatchObject([{ outcome: { by: 'turn' } }])
    const question = await promotionAsked(scope)
    expect(question).toMatchObject({ inputs: { says: ['Noted.'] } })
    await call(`/v1/approvals/${question?.id}/approve`, { json: {} })
    await until(async () => (await entriesOf(stub, 'reflex-moved')).length > 0, 'the scope knows')
    expect(await sendAndSettle(stub, note(scope, 'd'))).toMatchObject([{ outcome: { by: 'reflex', reflex_id: id } }])
    expect((await entriesOf(stub, 'reply-sent')).at(-1)).toMatchObject({ content: 'Noted.', reflex_id: id })
  })

  test.each(['global', 'plain'])('under a key does again what was undone, and what used its output: by act_%s', async (kind) => {
    const text = `counted`
    const acts = [
      act(`'mail'`),
      `{ action_type: 'call_tool', tool: 'act_${kind}', args: { text: '${text}' } }`,
      act(`'?'`, `, uses: [{ at: '/args/text', output: 1, path: '/times' }]`),
    ]
    const of = freshScope(kind === 'plain' ? 'plain' : 'test')
    const body = `return { action_type: 'sequence', acts: [${acts.join()}], idempotence_key: 'k' }`
    const { scope, stub } = await acting(body, {}, of)
    await sendAndSettle(stub, note(scope, 'a'))
    expect(did(scope)).toEqual(['mail', text, '1'])
    await stub.callTool({ tool: `undo_${kind}`, input: { text }, key: crypto.randomUUID() }, 'ops')
    const [record] = await sendAndSettle(stub, note(scope, 'b'))
    expect(record).toMatchObject({ outcome: { by: 'reflex' } })
    // The mail was not undone.
    expect(did(scope)).toEqual(['mail', text, '1', text, text, '3'])
    expect(await sendAndSettle(stub, note(scope, 'c'))).toMatchObject([{ outcome: { by: 'reflex', reused: true } }])
    expect(did(scope)).toHaveLength(6)
  })

  test('passes on outputs that are masked in the log, also when the journal answers them', async () => {
    const failing = returns(act(TEXT), act(`'hang once'`), act(`'?'`, `, uses: [{ at: '/args/text', output: 0, path: '/did' }]`))
    const { scope, stub, event } = await deadLetter(failing, { redact: ['did'] })
    await stub.reopen([event.id], 'ops')
    await until(async () => (await stub.event(event.id))?.ended_at, 'the retried event has its outcome')
    expect(did(scope)).toEqual(['a', 'hang once', 'hang once', 'a'])
    for (const { output } of await entriesOf(stub, 'effect-ended')) expect(JSON.stringify(output)).not.toContain('"a"')
  })

  test('whose outputs are masked in the log is replayed as far as it is known', async () => {
    const { scope, stub } = await acting(chained)
    await stub.configure({ redact: ['did'] }, 'ops')
    const event = note(scope, 'a')
    await sendAndSettle(stub, event)
    expect(did(scope)).toEqual(['a', 'a'])
    expect(await replayed(scope, event)).toMatchObject({ divergences: [] })
  })

  test('has one key: a second one under it does nothing', async () => {
    const { scope, stub } = await acting(`return { action_type: 'sequence', acts: [${act(TEXT)}, ${act(`'x'`)}], idempotence_key: 'k' }`)
    await sendAndSettle(stub, note(scope, 'a'))
    const [record] = await sendAndSettle(stub, note(scope, 'b'))
    expect(record).toMatchObject({ outcome: { by: 'reflex', reused: true } })
    expect(did(scope)).toEqual(['a', 'x'])
  })
})

describe('a sequence with branches', () => {
  const on = (value: string, ...acts: string[]) =>
    `{ when: [{ output: 0, path: '/did', one_of: ['${value}'] }], acts: [${acts.join(', ')}] }`
  const branches = (...branches: string[]) =>
    `return { action_type: 'sequence', acts: [${act(TEXT)}], branches: [${branches.join(', ')}], consume: true }`
  const again = act(`'?'`, `, uses: [{ at: '/args/text', output: 0, path: '/did' }]`)
  const body = branches(on('a', again, act(`'of a'`)), on('b'))

  test.each([
    ['a', ['a', 'a', 'of a']],
    ['b', ['b']],
  ])('does the acts of the one that the output of its first call is for: %s', async (text, expected) => {
    const { scope, stub } = await acting(body)
    const event = note(scope, text)
    const [record] = await sendAndSettle(stub, event)
    expect(record).toMatchObject({ status: 'completed', outcome: { by: 'reflex' } })
    expect(did(scope)).toEqual(expected)
    expect((await entriesOf(stub, 'action-ended'))[0]?.acts).toHaveLength(expected.length)
    expect(await replayed(scope, event)).toMatchObject(same)
  })

  test('leaves its event to a turn where no branch is for the output, and nothing failed', async () => {
    const { id, scope, stub } = await acting(body)
    behaviours.set(scope, async (_, deps) => deps.call('act', { text: 'z' }))
    const event = note(scope, 'z')
    const [record] = await sendAndSettle(stub, event)
    expect(record).toMatchObject({ outcome: { by: 'turn', result: { did: 'z' } } })
    // The turn gets the output of the call that was made.
    expect(did(scope)).toEqual(['z'])
    expect(await entriesOf(stub, 'action-ended')).toMatchObject([{ status: 'failed', error: /no branch/, acts: [{ status: 'ok' }] }])
    expect((await stub.metrics()).reflexes.find((one) => one.reflex_id === id)?.metrics).toMatchObject({ fired: 1, failed: 0 })
    expect(await replayed(scope, event)).toMatchObject(same)
  })

  test('under a key sends the event of its other branch, too, once its first call is undone', async () => {
    const sent = (text: string) => SENT.replace("'sent'", `'${text}'`)
    const first = `{ when: [{ output: 0, path: '/times', one_of: ['1'] }], acts: [${act(`'one'`)}, ${sent('first')}] }`
    const counted = `{ action_type: 'call_tool', tool: 'act_plain', args: { text: 'counted' } }`
    const { scope, stub } = await acting(
      `if (context.event.text !== 'a' && context.event.text !== 'b') return { action_type: 'ignore', reason: 'sent' }
      return { action_type: 'sequence', acts: [${counted}], branches: [${first}, { when: [], acts: [${act(`'more'`)}, ${sent('later')}] }], idempotence_key: 'k' }`,
      {},
      freshScope('plain'),
    )
    await sendAndSettle(stub, note(scope, 'a'))
    await stub.callTool({ tool: 'undo_plain', input: { text: 'counted' }, key: crypto.randomUUID() }, 'ops')
    await sendAndSettle(stub, note(scope, 'b'))
    expect(did(scope)).toEqual(['counted', 'one', 'counted', 'counted', 'more'])
    expect((await entriesOf(stub, 'event-accepted')).filter(({ via }) => via === 'reflex')).toHaveLength(2)
  })

  test('whose branch fails names the act, and its turn gets the outputs of all calls before it', async () => {
    const { scope, stub } = await acting(branches(on('a', act(`'b'`), act(`'throw'`))))
    behaviours.set(scope, async (_, deps) => [await deps.call('act', { text: 'a' }), await deps.call('act', { text: 'b' })])
    await sendAndSettle(stub, note(scope, 'a'))
    expect(did(scope)).toEqual(['a', 'b', 'throw'])
    expect(await entriesOf(stub, 'action-ended')).toMatchObject([
      { status: 'failed', error: expect.stringMatching(/^act 3 of 3: /), acts: [{ status: 'ok' }, { status: 'ok' }, { status: 'failed' }] },
    ])
  })

  test('by an output that is masked in the log is replayed as far as it is known', async () => {
    const { scope, stub } = await acting(body)
    await stub.configure({ redact: ['did'] }, 'ops')
    const event = note(scope, 'a')
    await sendAndSettle(stub, event)
    expect(did(scope)).toEqual(['a', 'a', 'of a'])
    expect(await replayed(scope, event)).toMatchObject({ divergences: [] })
  })

  test('is refused with more acts on a path than a sequence has', async () => {
    const { scope, stub } = await acting(branches(on('a', ...Array.from({ length: 8 }, () => act(TEXT)))))
    await sendAndSettle(stub, note(scope, 'a'))
    expect(did(scope)).toEqual([])
    expect(await entriesOf(stub, 'reflex-passed')).toMatchObject([{ reason: 'refused', error: expect.stringContaining('makes 9 acts') }])
  })

  test('takes the same branch when the process dies in it', async () => {
    const dying = branches(on('a', act(`'hang once'`), act(`'of a'`)), on('hang once', act(`'other'`)))
    const { scope, stub, event } = await deadLetter(dying)
    await stub.reopen([event.id], 'ops')
    await until(async () => (await stub.event(event.id))?.ended_at, 'the retried event has its outcome')
    expect(await stub.event(event.id)).toMatchObject({ outcome: { by: 'reflex' } })
    expect(did(scope)).toEqual(['a', 'hang once', 'hang once', 'of a'])
  })

  test.each([`none_of: ['b']`, 'present: false'])('takes no branch by an output that was not kept: %s', async (asked) => {
    const branch = `{ when: [{ output: 0, path: '/did', ${asked} }], acts: [${act(`'wrong'`)}] }`
    const { id, scope, stub } = await acting(branches(branch))
    behaviours.set(scope, async (_, deps) => deps.call('act', { text: 'right' }))
    const event = note(scope, 'large')
    expect(await sendAndSettle(stub, event)).toMatchObject([{ outcome: { by: 'turn', result: { did: 'right' } } }])
    expect(did(scope)).toEqual(['large', 'right'])
    expect(await entriesOf(stub, 'action-ended')).toMatchObject([{ status: 'failed', error: /was not kept/, acts: [{ status: 'ok' }] }])
    expect((await stub.metrics()).reflexes.find((one) => one.reflex_id === id)?.metrics).toMatchObject({ fired: 1, failed: 0 })
    expect(await replayed(scope, event)).toMatchObject({ divergences: [] })
  })

  test('under a key does the calls of its other branch once its first call is undone, which then returns something else', async () => {
    const first = `{ action_type: 'call_tool', tool: 'act_plain', args: { text: 'counted' } }`
    const once = `{ when: [{ output: 0, path: '/times', one_of: ['1'] }], acts: [${act(`'once'`)}] }`
    const body = `return { action_type: 'sequence', acts: [${first}], branches: [${once}, { when: [], acts: [${act(`'again'`)}] }], idempotence_key: 'k' }`
    const { scope, stub } = await acting(body, {}, freshScope('plain'))
    await sendAndSettle(stub, note(scope, 'a'))
    await stub.callTool({ tool: 'undo_plain', input: { text: 'counted' }, key: crypto.randomUUID() }, 'ops')
    await sendAndSettle(stub, note(scope, 'b'))
    expect(did(scope)).toEqual(['counted', 'once', 'counted', 'counted', 'again'])
    expect(await sendAndSettle(stub, note(scope, 'c'))).toMatchObject([{ outcome: { reused: true } }])
  })

  const look = `{ action_type: 'call_tool', tool: 'look', args: { text: 'hang once' } }`
  const times = (count: number, text: string) => `{ when: [{ output: 0, path: '/times', one_of: [${count}] }], acts: [${act(text)}] }`
  const looking = (...own: string[]) => `return { action_type: 'sequence', acts: [${look}], branches: [${own.join()}], consume: true }`

  test('leaves to a turn what its look-up returned, too', async () => {
    const { scope, stub } = await acting(looking(times(7, `'seven'`)), {}, freshScope('look'))
    behaviours.set(scope, async (_, deps) => deps.call('look', { text: 'hang once' }))
    expect(await sendAndSettle(stub, note(scope, 'a'))).toMatchObject([{ outcome: { by: 'turn', result: { times: 0 } } }])
    expect(looks.get(scope)).toBe(1)
    expect(await entriesOf(stub, 'turn-started')).toMatchObject([{ done: [{ tool: 'look', output: { times: 0 } }] }])
  })

  test('takes the branch of its look-up also when a person retries it, and the world has changed', async () => {
    const { scope, stub, event } = await deadLetter(looking(times(0, `'hang once'`), times(1, `'other'`)), {}, freshScope('look'))
    await stub.reopen([event.id], 'ops')
    await until(async () => (await stub.event(event.id))?.ended_at, 'the retried event has its outcome')
    expect(did(scope)).toEqual(['hang once', 'hang once'])
    expect(looks.get(scope)).toBe(1)
  })

  const missed = (...first: string[]) =>
    `return { action_type: 'sequence', acts: [${first.join()}], branches: [
      { when: [{ output: 0, path: '/@failed', one_of: ['404'] }], acts: [${act(`'made'`)}] },
      { when: [{ output: 0, path: '/@failed', present: false }], acts: [${act(`'found'`)}] },
    ], consume: true }`
  const lookFor = `{ action_type: 'call_tool', tool: 'look', args: { text: ${TEXT} } }`

  test.each([
    ['gone', 'made'],
    ['here', 'found'],
  ])('takes the branch of its look-up that failed, and no other: %s', async (text, expected) => {
    const { id, scope, stub } = await acting(missed(lookFor), {}, freshScope('look'))
    const event = note(scope, text)
    expect(await sendAndSettle(stub, event)).toMatchObject([{ status: 'completed', outcome: { by: 'reflex' } }])
    expect(did(scope)).toEqual([expected])
    expect((await stub.metrics()).reflexes.find((one) => one.reflex_id === id)?.metrics).toMatchObject({ fired: 1, failed: 0 })
    expect(await replayed(scope, event)).toMatchObject(same)
  })

  test('leaves to a turn a look-up that failed in another way, which is no failure of its own', async () => {
    const { id, scope, stub } = await acting(missed(lookFor), {}, freshScope('look'))
    behaviours.set(scope, async (_, deps) => deps.call('act', { text: 'waits' }))
    expect(await sendAndSettle(stub, note(scope, 'down'))).toMatchObject([{ outcome: { by: 'turn', result: { did: 'waits' } } }])
    expect(did(scope)).toEqual(['waits'])
    expect((await stub.metrics()).reflexes.find((one) => one.reflex_id === id)?.metrics).toMatchObject({ fired: 1, failed: 0 })
  })

  test.each([
    ['a call that acts', [act(`'throw'`)]],
    ['a look-up before its last act', [lookFor, act(`'then'`)]],
  ])('has no branch for a failure of %s', async (_, first) => {
    const { id, scope, stub } = await acting(missed(...first), {}, freshScope('look'))
    behaviours.set(scope, async (_, deps) => deps.call('act', { text: 'by a turn' }))
    expect(await sendAndSettle(stub, note(scope, 'gone'))).toMatchObject([{ outcome: { by: 'turn' } }])
    expect(did(scope).filter((text) => text !== 'throw')).toEqual(['by a turn'])
    expect((await stub.metrics()).reflexes.find((one) => one.reflex_id === id)?.metrics).toMatchObject({ fired: 1, failed: 1 })
  })

  test('is compared in shadow mode with a turn whose look-up failed', async () => {
    const scope = freshScope('look')
    const { id } = await write(missed(lookFor), { state: 'shadow', scope })
    const stub = stubOf(scope)
    await stub.configure({ reflexes: [{ id }], learning: { mode: 'auto' } }, 'ops')
    behaviours.set(scope, async ({ events }, deps) => {
      const text = textOf(events.at(-1)!)
      const found = await deps.call('look', { text }).catch(() => null)
      await deps.call('act', { text: found || text === 'down' ? 'found' : 'made' })
      return { done: true }
    })
    for (const text of ['gone', 'here', 'down']) await sendAndSettle(stub, note(scope, text))
    expect((await entriesOf(stub, 'reflex-compared')).map(({ agreed }) => agreed)).toEqual([true, true, null])
    behaviours.set(scope, async (_, deps) => deps.call('act', { text: 'made' }))
    await sendAndSettle(stub, note(scope, 'gone'))
    expect((await entriesOf(stub, 'reflex-compared')).at(-1)).toMatchObject({ agreed: false })
  })

  test('is refused with an act in any branch that is not permitted', async () => {
    const { scope, stub } = await acting(branches(on('a', act(TEXT)), on('b', `{ action_type: 'call_tool', tool: 'none', args: {} }`)))
    await sendAndSettle(stub, note(scope, 'a'))
    expect(did(scope)).toEqual([])
    expect(await entriesOf(stub, 'reflex-passed')).toMatchObject([{ reason: 'refused', error: expect.stringContaining('tool none') }])
  })

  test('or with an act that uses an output has its own order', async () => {
    const using = act(`'?'`, `, uses: [{ at: '/args/text', output: 0, path: '/did' }]`)
    const { scope, stub } = await acting(`return { action_type: 'sequence', acts: [${act(TEXT)}, ${using}], any_order: true }`)
    await sendAndSettle(stub, note(scope, 'a'))
    expect(did(scope)).toEqual([])
    expect(await entriesOf(stub, 'reflex-passed')).toMatchObject([{ reason: 'refused', error: expect.stringContaining('any order') }])
  })

  test('is compared in shadow mode by what the calls of the turn returned', async () => {
    const scope = freshScope()
    const { id } = await write(body, { state: 'shadow', scope })
    const stub = stubOf(scope)
    await stub.configure({ reflexes: [{ id }], learning: { mode: 'auto' } }, 'ops')
    const more: string[] = []
    behaviours.set(scope, async ({ events }, deps) => {
      for (const text of [textOf(events.at(-1)!), ...more]) await deps.call('act', { text })
      return { done: true }
    })
    await sendAndSettle(stub, note(scope, 'b'))
    await sendAndSettle(stub, note(scope, 'z'))
    more.push('a', 'of a')
    await sendAndSettle(stub, note(scope, 'a'))
    await sendAndSettle(stub, note(scope, 'b'))
    expect((await entriesOf(stub, 'reflex-compared')).map(({ agreed }) => agreed)).toEqual([true, null, true, false])
    const proven = (await stub.metrics()).reflexes.find((one) => one.reflex_id === id)
    expect(proven?.certificate?.strata).toMatchObject([{ act: 'act + act + act or nothing' }])
  })
})
