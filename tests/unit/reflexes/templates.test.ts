import { describe, expect, test } from 'vitest'
import { QuickJsSandbox } from '../../../src/reflexes/quickjs-sandbox.ts'
import { sampleContext, type ReflexContext } from '../../../src/reflexes/reflex-context.ts'
import { dryRun, runReflex } from '../../../src/reflexes/run-reflex.ts'
import { checkReflex } from '../../../src/reflexes/static-check.ts'
import { deduplicator } from '../../../src/reflexes/templates/deduplicator.ts'
import { instantiateTemplate, type ReflexTemplate } from '../../../src/reflexes/templates/define-template.ts'
import { genesisTradingReflex } from '../../../src/reflexes/templates/genesis-trading-reflex.ts'
import { templates } from '../../../src/reflexes/templates/index.ts'
import { keywordRouter } from '../../../src/reflexes/templates/keyword-router.ts'
import { rateLimiter } from '../../../src/reflexes/templates/rate-limiter.ts'
import { smallPurchases } from '../../../src/reflexes/templates/small-purchases.ts'
import { thresholdInWindow } from '../../../src/reflexes/templates/threshold-in-window.ts'
import { program } from '../../support/reflex-programs.ts'
import { sandboxModule } from '../../support/sandbox-module.ts'

const sandbox = new QuickJsSandbox(sandboxModule)
const block = {
  action_type: 'call_tool',
  tool: 'block_address',
  args: { address: '{event.address}', why: '{count} failures of {event.nobody}', n: ['{count}'] },
}
const reply = (content: string) => ({ action_type: 'reply', content })

const params: Record<string, unknown> = {
  'threshold-in-window': { event_type: 'ssh.failed', at_least: 3, action: block },
  'rate-limiter': { limit: 2 },
  deduplicator: { event_type: 'ws.message', fields: ['content'] },
  'keyword-router': {
    routes: [
      { keywords: ['Refund', 'money back'], action: reply('{keyword}: ask {event.connection_id}') },
      { keywords: ['ü'], action: reply('Ü') },
    ],
  },
  'small-purchases': { max_price: 10 },
  genesis_trading_reflex: { max_price: 10, min_price: 3, buyers: ['scope:shop/*'], refused_buyers: ['scope:shop/bad'] },
}

function codeOf(template: ReflexTemplate, input: unknown): string {
  const instance = instantiateTemplate(template, input)
  if (!instance.ok) throw new Error(JSON.stringify(instance.errors))
  return instance.code
}
const actionOf = (template: ReflexTemplate, input: unknown, context: Partial<ReflexContext>) => {
  const { action, error } = runReflex(sandbox, program(codeOf(template, input)), { ...sampleContext, ...context })
  expect(error).toBeNull()
  return action
}
const event = (fields: Record<string, unknown>) => ({ ...sampleContext.event, ...fields })
const counted = (by_type: Record<string, number>, by_source: Record<string, number>) => {
  const counts = { total: 0, by_type, by_source }
  return { '10s': counts, '1m': counts, '10m': counts }
}

describe.each(templates)('the template $name', (template) => {
  test('becomes code that passes the static check and the dry run', async () => {
    const code = codeOf(template, params[template.name])
    expect(await checkReflex(code)).toMatchObject({ ok: true })
    expect(dryRun(sandbox, program(code))).toMatchObject({ ok: true })
  })

  test('says which parameter is wrong', () => {
    expect(instantiateTemplate(template, { nonsense: 1 })).toMatchObject({
      ok: false,
      errors: expect.arrayContaining([{ path: '', message: expect.stringContaining('nonsense') }]),
    })
  })

  test('describes itself', () => {
    expect(template.description.length).toBeGreaterThan(40)
  })
})

describe('threshold-in-window', () => {
  const failed = event({ type: 'ssh.failed', address: '203.0.113.1' })
  const act = (context: Partial<ReflexContext>, more = {}) =>
    actionOf(thresholdInWindow, { event_type: 'ssh.failed', at_least: 3, action: block, ...more }, { event: failed, ...context })

  test('acts from the threshold on, with the event’s fields filled in', () => {
    expect(act({ window: counted({ 'ssh.failed': 2 }, {}) })).toBeNull()
    expect(act({ window: counted({ 'ssh.failed': 3 }, {}) })).toEqual({
      action_type: 'call_tool',
      tool: 'block_address',
      args: { address: '203.0.113.1', why: '3 failures of {event.nobody}', n: [3] },
    })
  })

  test('counts the source alone where it is asked to', () => {
    expect(act({ window: counted({ 'ssh.failed': 9 }, { 'ws:alice': 2 }) }, { count_by: 'source' })).toBeNull()
    expect(act({ window: counted({ 'ssh.failed': 9 }, { 'ws:alice': 3 }) }, { count_by: 'source' })).not.toBeNull()
  })

  test('does not act again while it cools down', () => {
    const before = (seconds_ago: number) => [
      { at: failed.timestamp, seconds_ago, event_id: 'a', action: { action_type: 'escalate' as const, reason: 'x' } },
    ]
    const window = counted({ 'ssh.failed': 9 }, {})
    expect(act({ window, recent_actions: before(59) })).toBeNull()
    expect(act({ window, recent_actions: before(60) })).not.toBeNull()
  })

  test('leaves other events alone', () => {
    expect(act({ event: event({ type: 'ssh.accepted' }), window: counted({ 'ssh.failed': 9 }, {}) })).toBeNull()
  })

  test('a parameter cannot become code', () => {
    const type = '"\n}; for (;;); //\u2028`${1}'
    expect(act({ event: event({ type, address: 1 }), window: counted({ [type]: 3 }, {}) }, { event_type: type })).toMatchObject({
      args: { address: 1 },
    })
  })
})

describe('rate-limiter', () => {
  const act = (count: number, more: Partial<ReflexContext> = {}, input = {}) =>
    actionOf(rateLimiter, { limit: 2, ...input }, { window: counted({}, { 'ws:alice': count }), ...more })

  test('lets through what is within the limit', () => {
    expect(act(2)).toBeNull()
  })

  test('answers the first too many, counts the others, and takes them all out', () => {
    expect(act(3)).toMatchObject({ action_type: 'reply', consume: true })
    expect(act(4)).toEqual({ action_type: 'set_scratch', key: 'limited', value: 1, consume: true })
    expect(act(5, { scratch: { limited: 1 } })).toMatchObject({ value: 2 })
  })

  test('limits one type of event where it is asked to', () => {
    expect(act(9, {}, { event_type: 'http.request' })).toBeNull()
  })
})

describe('deduplicator', () => {
  const earlier = event({ id: 'earlier', content: 'hello' })
  const act = (recent: ReturnType<typeof event>[], input = {}) =>
    actionOf(deduplicator, { event_type: 'ws.message', fields: ['content'], ...input }, { recent_events: [...recent, sampleContext.event] })

  test('takes out what was said before', () => {
    expect(act([])).toBeNull()
    expect(act([earlier])).toEqual({ action_type: 'set_scratch', key: 'duplicates', value: 1, consume: true })
  })

  test('asks for the same source unless told otherwise', () => {
    const other = { ...earlier, source: 'ws:bob' }
    expect(act([other])).toBeNull()
    expect(act([other], { any_source: true })).not.toBeNull()
  })

  test('compares every field named', () => {
    expect(act([earlier], { fields: ['content', 'connection_id'] })).not.toBeNull()
    expect(act([{ ...earlier, connection_id: 'bob' }], { fields: ['content', 'connection_id'] })).toBeNull()
  })
})

describe('keyword-router', () => {
  const act = (content: unknown) => actionOf(keywordRouter, params['keyword-router'], { event: event({ content }) })

  test.each([
    ['I want a REFUND!', 'Refund: ask alice'],
    ['give me my money back', 'money back: ask alice'],
    ['Ü?', 'Ü'],
  ])('%j is routed', (content, answer) => {
    expect(act(content)).toEqual(reply(answer))
  })

  test.each(['refunds', 'money', '', '   ', 7, null])('%j is not', (content) => {
    expect(act(content)).toBeNull()
  })
})

describe('small-purchases', () => {
  const offer = (price: number) => ({ deal_id: `deal-${price}`, artifact_id: 'service', price, buyer: 'bob' })
  const act = (...prices: number[]) => actionOf(smallPurchases, { max_price: 10 }, { pending_purchases: prices.map(offer) })

  test('accepts the cheapest that is cheap enough, once', () => {
    expect(act(20, 10, 5, 7)).toEqual({
      action_type: 'invoke_artifact',
      artifact_id: 'genesis_escrow',
      method: 'accept',
      args: ['deal-5'],
      idempotence_key: 'accept:deal-5',
    })
  })

  test('leaves the dear ones to the model', () => {
    expect(act(11, 20)).toBeNull()
    expect(act()).toBeNull()
  })
})

describe('genesis_trading_reflex', () => {
  const offer = (price: number, buyer = 'scope:shop/a') => ({ deal_id: `${buyer}-${price}`, artifact_id: 'reflex:r', price, buyer })
  const other = { ...offer(5), deal_id: 'other' }
  const act = (deal: ReturnType<typeof offer>, of: Record<string, unknown> = { type: 'offer', deal_id: deal.deal_id }) =>
    actionOf(genesisTradingReflex, params.genesis_trading_reflex, { pending_purchases: [other, deal], event: event(of) })
  const rejects = (reason: RegExp) => ({ method: 'reject', args: [expect.any(String), expect.stringMatching(reason)] })

  test.each([3, 10])('accepts an offer of %d at its event', (price) => {
    expect(act(offer(price))).toEqual({
      action_type: 'invoke_artifact',
      artifact_id: 'genesis_escrow',
      method: 'accept',
      args: [`scope:shop/a-${price}`],
      idempotence_key: `accept:scope:shop/a-${price}`,
    })
  })

  test('rejects an offer below the floor', () => {
    expect(act(offer(2))).toMatchObject(rejects(/below 3/))
  })

  test.each(['scope:other', 'scope:shop/bad', 'key:shop/a'])('rejects an offer of %s', (buyer) => {
    expect(act(offer(5, buyer))).toMatchObject(rejects(/does not sell to this buyer/))
  })

  test('leaves dear offers and other events to the model', () => {
    expect(act(offer(11))).toBeNull()
    expect(act(offer(5), { type: 'ws.message' })).toBeNull()
    expect(act(offer(5), { type: 'offer', deal_id: 'answered' })).toBeNull()
  })

  test('refuses a floor above the highest price', () => {
    expect(instantiateTemplate(genesisTradingReflex, { max_price: 1, min_price: 2 })).toMatchObject({
      ok: false,
      errors: [{ path: 'min_price' }],
    })
  })
})
