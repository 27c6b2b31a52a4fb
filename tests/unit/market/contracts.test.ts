import { describe, expect, test } from 'vitest'
import { TestMarket } from '../../support/market-in-memory.ts'

const HOUR = 3_600_000
const parts = { caller: 'scope:bob', provider: 'scope:alice' }

/** Bob has 100 and may call Alice's reflex twice, for 30 a call. */
function underContract(limit = 2) {
  const market = new TestMarket()
  market.mint(parts.caller, 100)
  const terms = { proposer: parts.caller, counterparty: parts.provider, service: 'reflex:greet', price_per_invocation: 30, limit }
  const by = { name: parts.caller, opens: [parts.provider] }
  market.act(({ contracts }, now) => contracts.propose({ id: 'contract', ...terms }, by, now))
  market.act(({ contracts }, now) => contracts.decide('contract', 'accept', { account: parts.provider }, now))
  const call = (invocation_id: string) =>
    market.act(({ contracts }, now) => contracts.payInvocation('contract', { caller: parts.caller, invocation_id }, now))
  const settle = (invocation_id: string, served: boolean) =>
    market.act(({ contracts }, now) => contracts.settleInvocation('contract', { invocation_id, served, trace_id: null }, now))
  const worth = () => [parts.provider, parts.caller].map((account) => market.balance(account).available)
  return { market, call, settle, worth }
}

describe('a call under a contract', () => {
  test('reserves its price, which is paid once it was served, and once only', () => {
    const { call, settle, worth } = underContract()
    expect(call('one')).toMatchObject({ ok: true, contract: { invocations: 0, paid: 0 } })
    expect(call('one')).toMatchObject({ ok: true })
    expect(worth()).toEqual([0, 70])
    expect(settle('one', true)).toMatchObject({ ok: true, contract: { invocations: 1, paid: 30 } })
    expect(settle('one', true)).toMatchObject({ ok: true, contract: { invocations: 1, paid: 30 } })
    expect(settle('one', false)).toMatchObject({ ok: true })
    expect(worth()).toEqual([30, 70])
  })

  test('that was not served returns the money, and has ended', () => {
    const { call, settle, worth } = underContract()
    call('one')
    expect(settle('one', false)).toMatchObject({ ok: true, contract: { invocations: 0 } })
    expect(worth()).toEqual([0, 100])
    const ended = { ok: false, reason: 'used_up', detail: 'The call one has ended without an answer.' }
    expect(call('one')).toEqual(ended)
  })

  test('that nobody settled within an hour was not served, whatever is said later', () => {
    const { market, call, settle, worth } = underContract()
    call('one')
    market.now += HOUR
    expect(worth()).toEqual([0, 100])
    const detail = 'The call one has ended: its money was returned.'
    expect(settle('one', true)).toEqual({ ok: false, reason: 'used_up', detail })
    expect(settle('one', false)).toMatchObject({ ok: true, contract: { invocations: 0, paid: 0 } })
    expect(worth()).toEqual([0, 100])
  })

  test('counts toward the limit as long as it is under way', () => {
    const { call, settle } = underContract()
    call('one')
    call('two')
    const used_up = { ok: false, reason: 'used_up', detail: 'The contract contract allows 2 calls, which are used up.' }
    expect(call('three')).toEqual(used_up)
    settle('one', false)
    expect(call('three')).toMatchObject({ ok: true })
    settle('two', true)
    settle('three', true)
    expect(call('four')).toEqual(used_up)
  })
})
