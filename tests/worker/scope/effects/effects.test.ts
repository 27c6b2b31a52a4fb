import { describe, expect, test } from 'vitest'
import { age, crash, entriesOf, freshScope, hurry, inObject, note, send, sendAndSettle, stubOf, until } from '../../../support/scopes.ts'
import { ask, behaviours, effectGates, effects } from '../../../support/test-agents.ts'

const ran = (scope: string) => effects.filter((effect) => effect.scope === scope)

describe('the effect lane', () => {
  test('never lets two effects of a scope overlap, and each is in the log before and after', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => Promise.all(['a', 'b', 'c'].map((text) => deps.call('act', { text }))))
    await sendAndSettle(stub, note(scope, 'go'))
    const spans = ran(scope)
    expect(spans).toHaveLength(3)
    const overlapping = spans.filter((span, index) => span.started < (spans[index - 1]?.ended ?? 0))
    expect(overlapping).toEqual([])
    const log = [...(await entriesOf(stub, 'effect-started')), ...(await entriesOf(stub, 'effect-ended'))].sort((a, b) => a.seq - b.seq)
    expect(log.map(({ kind }) => kind)).toEqual(Array.from({ length: 3 }, () => ['effect-started', 'effect-ended']).flat())
    const [turn] = await entriesOf(stub, 'turn-started')
    for (const entry of log) expect(entry).toMatchObject({ trace_id: turn!.trace_id, parent_id: turn!.span_id })
  })

  test('a tool that this scope may not use is refused, and so is bad input', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ tools: ['act'], max_attempts: 1 }, 'test')
    const errors: string[] = []
    behaviours.set(scope, async (_, deps) => {
      await deps.call('act_once', { text: 'a' }).catch((error: Error) => errors.push(error.message))
      await deps.call('nothing', {}).catch((error: Error) => errors.push(error.message))
      await deps.call('act', { text: 1 }).catch((error: Error) => errors.push(error.message))
      return Object.keys(deps.tools)
    })
    const [record] = await sendAndSettle(stub, note(scope, 'go'))
    expect(record).toMatchObject({ outcome: { result: ['act'] } })
    expect(errors).toEqual([
      expect.stringContaining('not allowed'),
      expect.stringContaining('not allowed'),
      expect.stringContaining('bad input'),
    ])
    expect(ran(scope)).toEqual([])
  })

  test('secret arguments of a tool do not reach the log', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ redact: ['text'] }, 'test')
    behaviours.set(scope, async (_, deps) => deps.call('act', { text: 'hush' }))
    await sendAndSettle(stub, note(scope, 'go'))
    expect(await entriesOf(stub, 'effect-started')).toMatchObject([{ input: { text: expect.stringMatching(/^sha256:/) } }])
    expect(JSON.stringify((await stub.readLog(0, 100)).entries.filter((entry) => entry.includes('effect-started')))).not.toContain('hush')
  })

  test('an effect in flight does not hold up accepting or perceiving', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const gate = Promise.withResolvers<void>()
    effectGates.set(scope, gate.promise)
    behaviours.set(scope, async (context, deps) => (context.events.length === 1 ? deps.call('act', { text: 'slow' }) : null))
    const first = await send(stub, note(scope, 'go'))
    await until(async () => ran(scope).length === 1, 'the effect runs')
    const second = await send(stub, note(scope, 'more'), note(scope, 'noise'))
    expect((await stub.event(second[1]!))?.status).toBe('ignored')
    expect((await stub.context(10)).count).toBe(2)
    gate.resolve()
    expect(await stub.outcomes([...first, ...second], 15_000)).toMatchObject({ settled: true })
  })
})

describe('an effect is not repeated silently (G8)', () => {
  test('a retried turn is given what an earlier attempt did already, with or without a key', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    const outputs: unknown[] = []
    behaviours.set(scope, async (_, deps) => {
      outputs.push(await deps.call('act', { text: 'plain' }), await deps.call('act_once', { text: 'keyed' }))
      if (deps.attempt < 3) throw new Error('after the effects')
      return null
    })
    const [id] = await send(stub, note(scope, 'go'))
    for (const attempt of [1, 2]) {
      await until(
        async () => (await stub.event(id!))?.attempts === attempt && (await stub.event(id!))?.status === 'pending',
        `attempt ${attempt} failed`,
      )
      await hurry(stub)
    }
    expect(await stub.outcomes([id!], 15_000)).toMatchObject({ records: [{ status: 'completed', attempts: 3 }] })
    expect(ran(scope).map(({ text }) => text)).toEqual(['plain', 'keyed'])
    expect(outputs).toEqual(Array.from({ length: 3 }, () => [{ did: 'plain' }, { did: 'keyed' }]).flat())
    expect((await entriesOf(stub, 'effect-ended')).filter(({ status }) => status === 'reused')).toHaveLength(4)
  })

  test('the same call twice in one turn is two effects, and stays two when the turn is repeated', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => {
      await deps.call('act', { text: 'twice' })
      await deps.call('act', { text: 'twice' })
      if (deps.attempt === 1) throw new Error('after both')
      return null
    })
    const [id] = await send(stub, note(scope, 'go'))
    await until(async () => (await stub.event(id!))?.status === 'pending' && ran(scope).length === 2, 'the first attempt failed')
    await hurry(stub)
    expect(await stub.outcomes([id!], 15_000)).toMatchObject({ records: [{ status: 'completed' }] })
    expect(ran(scope)).toHaveLength(2)
    const ended = await entriesOf(stub, 'effect-ended')
    const idsOf = (status: string) => ended.filter((entry) => entry.status === status).map(({ effect_id }) => effect_id)
    expect(idsOf('reused')).toEqual(idsOf('ok'))
  })

  test('a key holds across turns and events', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => deps.call('act_once', { text: 'x' }))
    await sendAndSettle(stub, note(scope, 'one'))
    const [record] = await sendAndSettle(stub, note(scope, 'two'))
    expect(record).toMatchObject({ outcome: { result: { did: 'x' } } })
    expect(ran(scope)).toMatchObject([{ key: 'once:x' }])
  })

  test('a failed effect with a key may be tried again', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    behaviours.set(scope, async (_, deps) => deps.call('act_once', { text: 'throw' }))
    await sendAndSettle(stub, note(scope, 'one'))
    await sendAndSettle(stub, note(scope, 'two'))
    expect(ran(scope)).toHaveLength(2)
    expect((await entriesOf(stub, 'effect-ended')).map(({ status }) => status)).toEqual(['failed', 'failed'])
  })

  test('one without a key that dies with the server ends as unknown, and its event waits for a person', async () => {
    const scope = freshScope()
    let stub = stubOf(scope)
    effectGates.set(scope, new Promise(() => {}))
    behaviours.set(scope, async (_, deps) => deps.call('act', { text: 'fatal' }))
    const [id] = await send(stub, note(scope, 'go'))
    await until(async () => ran(scope).length === 1, 'the effect runs')
    stub = await crash(scope)
    expect(await stub.outcomes([id!], 15_000)).toMatchObject({
      records: [{ status: 'dead_lettered', error: expect.stringContaining('unknown') }],
    })
    expect((await entriesOf(stub, 'effect-ended')).map(({ status }) => status)).toEqual(['unknown'])
    expect(ran(scope)).toHaveLength(1)
    effectGates.delete(scope)
    expect(await stub.reopen([id!], 'ops')).toEqual([id])
    expect(await stub.outcomes([id!], 15_000)).toMatchObject({ records: [{ status: 'completed' }] })
    expect(ran(scope)).toHaveLength(2)
  })

  test('one with a key that dies with the server runs again under the same key', async () => {
    const scope = freshScope()
    let stub = stubOf(scope)
    effectGates.set(scope, new Promise(() => {}))
    behaviours.set(scope, async (_, deps) => deps.call('act_once', { text: 'again' }))
    const [id] = await send(stub, note(scope, 'go'))
    await until(async () => ran(scope).length === 1, 'the effect runs')
    effectGates.delete(scope)
    stub = await crash(scope)
    expect(await stub.outcomes([id!], 15_000)).toMatchObject({ records: [{ status: 'completed', outcome: { result: { did: 'again' } } }] })
    expect(ran(scope).map(({ key }) => key)).toEqual(['once:again', 'once:again'])
    expect((await entriesOf(stub, 'effect-ended')).map(({ status }) => status)).toEqual(['unknown', 'ok'])
  })

  test('one that ended unknown without a key is not run again in its turn; with other input it is another', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ effect_timeout_ms: 100 }, 'test')
    const errors: string[] = []
    behaviours.set(scope, async (_, deps) => {
      const tried = (text: string) => deps.call('act', { text }).catch((error: Error) => void errors.push(error.message))
      effectGates.set(scope, new Promise(() => {}))
      await tried('a')
      effectGates.delete(scope)
      await tried('a')
      await tried('b')
      return { errors }
    })
    await sendAndSettle(stub, note(scope, 'go'))
    expect(errors).toEqual([expect.stringContaining('100 ms'), expect.stringContaining('may have happened in an earlier attempt')])
    expect(await entriesOf(stub, 'effect-ended')).toMatchObject([{ status: 'unknown' }, { status: 'ok' }])
  })

  test('one that takes longer than its timeout ends as unknown and frees the lane', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => {
      const error = await deps.call('act_quickly', { text: 'hang' }).catch((failure: Error) => failure.message)
      return [error, await deps.call('act', { text: 'next' })]
    })
    const [record] = await sendAndSettle(stub, note(scope, 'go'))
    expect(record).toMatchObject({ outcome: { result: [expect.stringContaining('longer than 50 ms'), { did: 'next' }] } })
    expect((await entriesOf(stub, 'effect-ended')).map(({ status }) => status)).toEqual(['unknown', 'ok'])
  })

  test('an interrupted turn whose effect may have happened is not started again by itself', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ overlap: 'interrupt' }, 'test')
    effectGates.set(scope, new Promise(() => {}))
    behaviours.set(scope, async (context, deps) =>
      JSON.stringify(context.events.at(-1)).includes('"go"') ? deps.call('act', { text: 'cut' }) : null,
    )
    const [first] = await send(stub, note(scope, 'go'))
    await until(async () => ran(scope).length === 1, 'the effect runs')
    const [second] = await send(stub, note(scope, 'stop'))
    expect(await stub.outcomes([first!, second!], 15_000)).toMatchObject({
      records: [{ status: 'dead_lettered' }, { status: 'completed' }],
    })
    expect(ran(scope)).toHaveLength(1)
  })
})

describe('the model', () => {
  test('is metered: tokens, cost and its answer are in the log and the counters', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => ask(deps, 'hello'))
    const [record] = await sendAndSettle(stub, note(scope, 'go'))
    expect(record).toMatchObject({ outcome: { result: expect.stringContaining('you said hello') } })
    const [call] = await entriesOf(stub, 'model-called')
    expect(call).toMatchObject({
      status: 'ok',
      model: 'offline',
      prompt_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      usage: { model_calls: 1, cost_usd: 0 },
    })
    expect(JSON.stringify(call?.content)).toContain('you said hello')
    const { counters } = await stub.state()
    expect(counters).toMatchObject({ model_calls: 1, input_tokens: call!.usage.input_tokens, output_tokens: call!.usage.output_tokens })
    expect((await entriesOf(stub, 'turn-ended'))[0]?.usage).toEqual(call?.usage)
  })

  test('that fails fails its turn, and is in the log', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ max_attempts: 1 }, 'test')
    behaviours.set(scope, async (_, deps) => ask(deps, 'fail'))
    expect(await sendAndSettle(stub, note(scope, 'go'))).toMatchObject([
      { status: 'dead_lettered', error: expect.stringContaining('the model is down') },
    ])
    expect(await entriesOf(stub, 'model-called')).toMatchObject([{ status: 'failed' }])
  })

  test('whose budget is spent refuses turns with a reason; nothing is lost, and it continues with a raised budget', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    await stub.configure({ token_budget: { tokens: 1, per: 'total' } }, 'test')
    behaviours.set(scope, async (_, deps) => ask(deps, 'hello'))
    await sendAndSettle(stub, note(scope, 'spends it'))
    expect((await stub.state()).llm_tokens_remaining).toBe(0)
    const [id] = await send(stub, note(scope, 'waits'))
    const refused = await until(
      async () => (await entriesOf(stub, 'turn-ended')).find(({ status }) => status === 'refused'),
      'the turn is refused',
    )
    expect(refused.error).toContain('token budget')
    expect(await stub.event(id!)).toMatchObject({ status: 'pending', attempts: 0 })
    expect((await stub.state()).inbox).toEqual({ pending: 0, processing: 0, delayed: 1 })
    await stub.configure({ token_budget: { tokens: 100_000, per: 'day' } }, 'test')
    expect(await stub.outcomes([id!], 15_000)).toMatchObject({ records: [{ status: 'completed', attempts: 1 }] })
  })
})

describe('an effect with a key happens once for as long as the scope promises', () => {
  const inJournal = (stub: ReturnType<typeof stubOf>) =>
    inObject(stub, ({ storage }) => storage.sql.exec('SELECT count(*) AS rows FROM effects').one()['rows'])

  /** The log keeps entries that D1 does not have yet. */
  const replicated = (stub: ReturnType<typeof stubOf>) =>
    until(async () => (await stub.state()).outbox.waiting === 0, 'D1 has the outcomes')

  async function doneBefore(text: string) {
    const scope = freshScope()
    const stub = stubOf(scope)
    const outputs: unknown[] = []
    behaviours.set(scope, async (_, deps) => outputs.push(await deps.call('act_once', { text })))
    await sendAndSettle(stub, note(scope, 'first'))
    await replicated(stub)
    return { scope, stub, outputs }
  }

  test('also past the retention of the journal, with a short output', async () => {
    const { scope, stub, outputs } = await doneBefore('refund')
    await age(stub, 8)
    expect(await inJournal(stub)).toBe(0)
    await sendAndSettle(stub, note(scope, 'second'))
    await replicated(stub)
    await age(stub, 390)
    await sendAndSettle(stub, note(scope, 'third'))
    expect(ran(scope)).toHaveLength(1)
    expect(outputs).toEqual([outputs[0], outputs[0], outputs[0]])
    expect(await entriesOf(stub, 'effect-ended')).toMatchObject([{ status: 'reused', idempotence_key: 'once:refund' }])
  })

  test('with the reason in place of a long output', async () => {
    const { scope, stub, outputs } = await doneBefore('x'.repeat(400))
    await age(stub, 8)
    await sendAndSettle(stub, note(scope, 'second'))
    expect(ran(scope)).toHaveLength(1)
    expect(outputs[1]).toBeNull()
    const [reused] = await entriesOf(stub, 'effect-ended')
    expect(reused).toMatchObject({
      status: 'reused',
      output: null,
      error: expect.stringMatching(/done at .* output of \d+ bytes is older/),
    })
  })

  test('but not longer than its setting says', async () => {
    const { scope, stub } = await doneBefore('refund')
    await stub.configure({ idempotence_days: 30 }, 'test')
    await age(stub, 29)
    await sendAndSettle(stub, note(scope, 'second'))
    expect(ran(scope)).toHaveLength(1)
    await age(stub, 2)
    await sendAndSettle(stub, note(scope, 'third'))
    expect(ran(scope)).toHaveLength(2)
  })

  test('but one that failed is tried again, also past the retention of the journal', async () => {
    const scope = freshScope()
    const stub = stubOf(scope)
    behaviours.set(scope, async (_, deps) => deps.call('act_once', { text: 'throw' }).catch(() => null))
    await sendAndSettle(stub, note(scope, 'first'))
    await replicated(stub)
    await age(stub, 8)
    expect(await inJournal(stub)).toBe(0)
    await sendAndSettle(stub, note(scope, 'second'))
    expect(ran(scope)).toHaveLength(2)
  })

  test('and only the hash of its key is kept', async () => {
    const { stub } = await doneBefore('someone@example.com')
    await age(stub, 8)
    const kept = await inObject(stub, ({ storage }) => storage.sql.exec('SELECT hash, at FROM done_keys').toArray())
    expect(kept).toHaveLength(1)
    expect(JSON.stringify(kept)).not.toContain('example')
  })
})
