import { describe, expect, test } from 'vitest'
import type { ReflexRun } from '../../../src/contract/reflex.ts'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext, type ReflexContext } from '../../../src/reflexes/reflex-context.ts'
import { dryRun, HIDDEN_ERROR, runReflex, shownRun } from '../../../src/reflexes/run-reflex.ts'
import type { Sandbox } from '../../../src/reflexes/sandbox.ts'
import { program, reflexOf } from '../../support/reflex-programs.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'

const sandbox = new QuickJsSandbox(sandboxModule)
const run = (body: string, context: Partial<ReflexContext> = {}) => runReflex(sandbox, reflexOf(body), { ...sampleContext, ...context })

/** Document 2's own example. */
const trading = program(`function reflex(context) {
  for (const event of context.pending_purchases) {
    if (event.price <= 10) {
      return { action_type: 'invoke_artifact', artifact_id: 'genesis_escrow', method: 'accept', args: [event.deal_id] }
    }
  }
  return null
}`)
const offer = (price: number) => ({ deal_id: `deal-${price}`, artifact_id: 'service', price, buyer: 'bob' })

describe('running a reflex', () => {
  test('test_reflex_execution_returns_action: what it returns is the action', () => {
    const { action, reason, error, fuel } = runReflex(sandbox, trading, { ...sampleContext, pending_purchases: [offer(20), offer(5)] })
    expect(action).toEqual({ action_type: 'invoke_artifact', artifact_id: 'genesis_escrow', method: 'accept', args: ['deal-5'] })
    expect({ reason, error }).toEqual({ reason: 'fired', error: null })
    expect(fuel).toBeGreaterThan(0)
  })

  test('test_reflex_none_falls_through: null is no action', () => {
    expect(runReflex(sandbox, trading, { ...sampleContext, pending_purchases: [offer(20)] })).toMatchObject({
      action: null,
      reason: 'null',
      error: null,
    })
  })

  test('test_reflex_timeout_falls_through: a slow one is no action', () => {
    expect(run('for (;;);')).toMatchObject({ action: null, reason: 'limit' })
  })

  test('test_reflex_error_falls_through: one that fails is no action', () => {
    expect(run('return context.nothing.here')).toMatchObject({ action: null, reason: 'error', error: expect.stringContaining('TypeError') })
  })

  test('test_reflex_context_contents: it sees the fields of document 2 and ours, and no more', () => {
    const { action } = run('return { action_type: "reply", content: Object.keys(context).join() }')
    expect(action).toEqual({ action_type: 'reply', content: Object.keys(sampleContext).join() })
    const documented = 'agent_id tick balance llm_tokens_remaining recent_events pending_purchases pending_contracts owned_artifacts'
    const ours = 'event window recent_actions scratch thinking'
    expect(Object.keys(sampleContext)).toEqual(`${documented} ${ours}`.split(' '))
  })

  test('it sees every field as it was given, the large ones too', () => {
    const context = {
      ...sampleContext,
      scratch: { notes: 'x'.repeat(1000) },
      recent_events: Array.from({ length: 10 }, () => sampleContext.event),
    }
    const { value } = sandbox.run(reflexOf('return { context, again: context.recent_events === context.recent_events }'), context)
    expect(value).toEqual({ context, again: true })
    const changed = sandbox.run(reflexOf('context.scratch = 1; context.recent_events.length = 0; return { ...context }'), context)
    expect(changed.value).toEqual({ ...context, scratch: 1, recent_events: [] })
  })

  test('an invalid action is distinguished from an error', () => {
    expect(run('return { action_type: "launch" }')).toMatchObject({
      action: null,
      reason: 'invalid_action',
      error: expect.stringContaining('action_type'),
    })
    expect(run('return 1')).toMatchObject({
      action: null,
      reason: 'invalid_action',
      error: 'a reflex must return an action or null, not a number',
    })
  })
})

describe('a dry run', () => {
  test('passes where the reflex returns an action or null', () => {
    expect(dryRun(sandbox, trading)).toMatchObject({ ok: true, run: { reason: 'null' } })
    expect(dryRun(sandbox, reflexOf('return { action_type: "escalate", reason: "x" }'))).toMatchObject({
      ok: true,
      run: { reason: 'fired' },
    })
  })

  test('says where it failed', () => {
    expect(dryRun(sandbox, program('function reflex(context) {\n  return context.a.b\n}'))).toMatchObject({
      ok: false,
      errors: [{ line: 2, column: 1, message: expect.stringContaining('on the sample context: TypeError') }],
    })
  })

  test.each([
    ['it failed (line 12)', 12],
    ['it failed (line 3) after (line 12)', 12],
    ['it failed (line 3) at last', 1],
    ['it failed', 1],
  ])('names the line at the end of its error: %s', (error, line) => {
    const failing: Sandbox = { run: () => ({ value: null, reason: 'error', error, fuel: 1, duration_us: 0 }), dispose: () => {} }
    expect(dryRun(failing, program(''))).toMatchObject({ ok: false, errors: [{ line }] })
  })

  test('fails on what the static check cannot see', () => {
    expect(dryRun(sandbox, reflexOf('return { action_type: "launch" }'))).toMatchObject({ ok: false, run: { reason: 'invalid_action' } })
  })
})

describe('a run as all readers of a log may see it', () => {
  const ended: ReflexRun = { action: null, reason: 'null', error: null, fuel: 7, duration_us: 9 }
  const sealed = (fields: Partial<ReflexRun> = {}) => shownRun({ ...ended, ...fields }, { sealed: true })

  test('is as it was where its code may be read', () => {
    expect(shownRun(ended, { sealed: false })).toBe(ended)
  })

  test('says of sealed code no error and no time, and its fuel in steps', () => {
    expect(sealed()).toEqual({ ...ended, fuel: 25_000, duration_us: 0 })
    expect(sealed({ error: 'no such field: secret' }).error).toBe(HIDDEN_ERROR)
    expect([0, 25_000, 25_001, 100_000, 100_001].map((fuel) => sealed({ fuel }).fuel)).toEqual([25_000, 25_000, 100_000, 100_000, 400_000])
  })
})
