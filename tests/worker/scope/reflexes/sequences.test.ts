import { describe, expect, test } from 'vitest'
import { call } from '../../../support/http.ts'
import { acting, did } from '../../../support/reflex-chain.ts'
import { crash, entriesOf, freshScope, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { ask, behaviours } from '../../../support/test-agents.ts'

const TEXT = 'context.event.text'
const act = (text: string, more = '') => `{ action_type: 'call_tool', tool: 'act', args: { text: ${text} }${more} }`
const returns = (...acts: string[]) => `return { action_type: 'sequence', acts: [${acts.join(', ')}], consume: true }`
/** The second call does what the first one did, and the reply says it. */
const chained = returns(
  act(TEXT),
  act(`'?'`, `, uses: [{ at: '/args/text', output: 0, path: '/did' }]`),
  `{ action_type: 'reply', parts: ['I did ', { output: 1, path: '/did' }, '.'] }`,
)

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
      return { said: await ask(deps, 'continue'), again: await deps.call('act', { text: 'a' }) }
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

  test('has one key: a second one under it does nothing', async () => {
    const { scope, stub } = await acting(`return { action_type: 'sequence', acts: [${act(TEXT)}, ${act(`'x'`)}], idempotence_key: 'k' }`)
    await sendAndSettle(stub, note(scope, 'a'))
    const [record] = await sendAndSettle(stub, note(scope, 'b'))
    expect(record).toMatchObject({ outcome: { by: 'reflex', reused: true } })
    expect(did(scope)).toEqual(['a', 'x'])
  })
})
