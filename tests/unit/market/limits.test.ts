import { describe, expect, test } from 'vitest'
import type { NewTransfer } from '../../../src/features/market/contract/transfer.ts'
import { layTables } from '../../../src/kernel/lay-tables.ts'
import { Contracts } from '../../../src/features/market/contracts/contracts.ts'
import { ledgerDays, LIMITS } from '../../../src/features/market/limits.ts'
import { TABLES } from '../../../src/features/market/tables.ts'
import { openLedger } from '../../support/ledger.ts'
import { TestMarket } from '../../support/market-in-memory.ts'
import { ObjectSql } from '../../support/object-sql.ts'

const limited = (limits: Partial<typeof LIMITS>): TestMarket => {
  const market = new TestMarket()
  market.limits = { ...LIMITS, ...limits }
  for (const name of ['bob', 'carol']) market.mint(`scope:${name}`, 1000)
  return market
}

describe('beyond the limit of', () => {
  test('open listings of a seller, one more is refused until one is closed', () => {
    const market = limited({ listings: 2 })
    const list = (n: number) => market.list({ listing_id: `l${n}`, artifact: `reflex:a${n}@1` })
    expect([list(1), list(2)]).toMatchObject([{ ok: true }, { ok: true }])
    expect(list(3)).toMatchObject({ ok: false, reason: 'too_many', detail: expect.stringContaining('2 open listings') })
    market.act(({ deals }, now) => deals.unlist('l1', { reason: 'enough' }, now))
    expect(list(3)).toMatchObject({ ok: true })
  })

  test('open offers of a buyer, one more is refused until one is answered', () => {
    const market = limited({ offers: 2 })
    market.list({ price: 1 })
    const offer = (n: number) => market.offer({ id: `d${n}` })
    expect([offer(1), offer(2)]).toMatchObject([{ ok: true }, { ok: true }])
    expect(offer(3)).toMatchObject({ ok: false, reason: 'limit', detail: expect.stringContaining('2 open offers') })
    market.decide('reject', 'd1', 'scope:alice')
    expect(offer(3)).toMatchObject({ ok: true })
  })

  test('licences of a scope, an offer is not accepted, and stays open', () => {
    const market = limited({ licences: 1 })
    market.list()
    for (const id of ['d1', 'd2']) market.offer({ id })
    expect(market.decide('accept', 'd1', 'scope:alice')).toMatchObject({ ok: true })
    expect(market.decide('accept', 'd2', 'scope:alice')).toMatchObject({ ok: false, reason: 'limit' })
    expect(market.deal('d2')).toMatchObject({ status: 'offered' })
  })

  test('open contracts of a proposer, one more is refused until one has ended', () => {
    const { contracts, propose } = openContracts({ contracts: 1 })
    expect(propose('c2')).toMatchObject({ ok: false, reason: 'limit', detail: expect.stringContaining('1 open contracts') })
    contracts.decide('c1', 'end', { account: 'scope:a' }, 2)
    expect(propose('c2')).toMatchObject({ ok: true })
  })

  test('disputes of a contract, one more is refused; the last one again changes nothing', () => {
    const { contracts, sent } = openContracts()
    contracts.decide('c1', 'accept', { account: 'scope:b' }, 2)
    const dispute = (reason: string) => contracts.decide('c1', 'dispute', { account: 'scope:a', reason }, 3)
    const reasons = Array.from({ length: 20 }, (_, index) => `wrong answer ${index}`)
    for (const reason of [...reasons, 'wrong answer 19']) expect(dispute(reason)).toMatchObject({ ok: true })
    expect(contracts.contract('c1')?.disputes.map(({ reason }) => reason)).toEqual(reasons)
    expect(sent.filter((key) => key.includes(':disputed'))).toHaveLength(20)
    expect(dispute('once more')).toMatchObject({ ok: false, reason: 'limit', detail: expect.stringContaining('20 disputes') })
  })
})

function openContracts(limits: Partial<typeof LIMITS> = {}) {
  const sql = new ObjectSql().storage
  layTables(sql, 'contracts', TABLES['contracts'] ?? [])
  const { ledger } = openLedger()
  const sent: string[] = []
  const outbox = { put: (_topic: string, key: string) => void sent.push(key) }
  const contracts = new Contracts({ sql, ledger, outbox, limits: { ...LIMITS, ...limits }, separately: (work) => work() })
  const propose = (id: string) => {
    const terms = { service: 'skill:cook', price_per_invocation: 1, limit: 5 }
    return contracts.propose({ id, proposer: 'scope:a', counterparty: 'scope:b', ...terms }, { name: 'a', opens: ['scope:b'] }, 1)
  }
  expect(propose('c1')).toMatchObject({ ok: true })
  return { contracts, propose, sent }
}

describe('a caller with too many failed transfers in a day', () => {
  const DAY = 86_400_000
  const opens = ['scope:a', 'scope:b']
  function failing() {
    const { ledger, transaction } = openLedger(':memory:', () => {}, { failures: 2 })
    const act = (id: string, amount: number, { caller = 'kim', now = 1 } = {}) =>
      transaction(() => ledger.transfer([{ id, debit: 'scope:a', credit: 'scope:b', amount }], { opens, privileged: false, caller }, now))
    ledger.mint({ id: 'mint', to: 'scope:a', amount: 10 }, { opens }, 1)
    return act
  }
  const refused = [{ status: 'failed', reason: 'too_many_failures' }]

  test('is refused what would fail, and still pays and repeats', () => {
    const act = failing()
    for (const id of ['f1', 'f2']) expect(act(id, 99)).toMatchObject([{ reason: 'insufficient_funds' }])
    expect(act('f3', 99)).toMatchObject(refused)
    expect(act('f1', 99)).toMatchObject([{ reason: 'insufficient_funds' }])
    expect(act('paid', 1)).toMatchObject([{ status: 'created' }])
    expect(act('f4', 99, { caller: 'lee' })).toMatchObject([{ reason: 'insufficient_funds' }])
  })

  test('may fail again the next day, with an id that was refused', () => {
    const act = failing()
    for (const [now, id] of ['f1', 'f2', 'f3'].entries()) act(id, 99, { now })
    expect(act('f3', 99, { now: DAY - 1 })).toMatchObject(refused)
    expect(act('f3', 99, { now: DAY })).toMatchObject([{ reason: 'insufficient_funds' }])
    expect(act('f3', 1, { now: DAY })).toMatchObject([{ reason: 'exists_with_different_amount' }])
  })
})

describe('what one caller adds in a day', () => {
  const DAY = 86_400_000
  const open = (bytes: number) => {
    const { database, ledger, transaction } = openLedger(':memory:', () => {}, { bytes })
    transaction(() => ledger.mint({ id: 'm', to: 'scope:a', amount: 100 }, { opens: ['scope:a'] }, 0))
    const send = (caller: string, id: string, { now = 1, counted, memo }: { now?: number; counted?: string; memo?: string } = {}) => {
      const asked = { id, debit: 'scope:a', credit: 'scope:b', amount: 1, ...(memo !== undefined && { memo }) }
      const options = { caller, counted, opens: ['scope:b'], privileged: false }
      const [result] = transaction(() => ledger.transfer([asked], options, now))
      return result?.reason ?? result?.status
    }
    const counted = () => database.prepare('SELECT caller, day, bytes FROM growth').all()
    return { send, ledger, transaction, counted }
  }

  test('is a row, its ids and accounts four times and its texts twice; of days before nothing is kept', () => {
    const { send, ledger, transaction, counted } = open(Infinity)
    const act = (asked: Partial<NewTransfer>) =>
      transaction(() => ledger.transfer([{ id: 'end', ...asked }], { caller: 'ann', opens: ['scope:b'], privileged: false }, 1))
    const sides = { debit: 'scope:a', credit: 'scope:b', amount: 1 }
    act({ id: 'held', pending: true, code: 'rent', memo: 'é', ...sides })
    const held = 500 + 4 * 'held.scope:ascope:ascope:b'.length + 2 * 6
    expect(counted()).toEqual([{ caller: 'ann', day: 0, bytes: held }])
    act({ pending_id: 'held', void: true })
    const end = 500 + 4 * 'end.scope:aheld.scope:ascope:ascope:b'.length
    expect(counted()).toEqual([{ caller: 'ann', day: 0, bytes: held + end }])
    expect(send('bob', 'x', { now: DAY })).toBe('created')
    expect(counted()).toEqual([{ caller: 'bob', day: 1, bytes: 500 + 4 * 'x.scope:ascope:ascope:b'.length }])
  })

  test('has a bound; what is known is still answered, nothing of a refused request is kept, and the next day has room again', () => {
    const { send } = open(2000)
    expect([send('ann', '1'), send('ann', '2'), send('ann', '3'), send('ann', '4')]).toEqual([
      'created',
      'created',
      'created',
      'too_much_of_a_day',
    ])
    expect([send('ann', '1'), send('bob', '4')]).toEqual(['exists', 'created'])
    expect([send('ann', '5'), send('ann', '5', { now: DAY })]).toEqual(['too_much_of_a_day', 'created'])
  })

  test('counts texts, failures, and namesakes by the ids of their keys', () => {
    const { send } = open(2000)
    expect(send('ann', '1', { counted: 'key-1', memo: 'm'.repeat(500) })).toBe('created')
    expect(send('ann', '2', { counted: 'key-1', memo: 'm'.repeat(500) })).toBe('too_much_of_a_day')
    expect(send('ann', '2', { counted: 'key-2' })).toBe('created')
    const poor = open(2000)
    const dear = (id: string) =>
      poor.transaction(() =>
        poor.ledger.transfer(
          [{ id, debit: 'scope:a', credit: 'scope:b', amount: 999 }],
          { caller: 'ann', opens: ['scope:b'], privileged: false },
          1,
        ),
      )[0]?.reason
    expect([dear('1'), dear('2'), dear('3'), dear('4')]).toEqual([
      'insufficient_funds',
      'insufficient_funds',
      'insufficient_funds',
      'too_much_of_a_day',
    ])
  })

  test('counts listings and offers', () => {
    const market = limited({ bytes: 25_000 })
    const list = (n: number) => market.list({ listing_id: `l${n}`, artifact: `reflex:a${n}@1`, price: 1 })
    expect([list(1), list(2)]).toMatchObject([{ ok: true }, { ok: true }])
    expect(list(3)).toMatchObject({ ok: false, reason: 'too_many', detail: expect.stringContaining('in a day') })
    expect(market.offer({}, 'l1')).toMatchObject({ ok: false, reason: 'limit' })
    market.now += DAY
    expect(market.offer({}, 'l1')).toMatchObject({ ok: true })
  })
})

test.each([
  [undefined, 400],
  ['', 400],
  ['31', 31],
  ['36500', 36_500],
  ['30', null],
  ['36501', null],
  ['a year', null],
  ['-1', null],
])('a retention of the Ledger of %o days is %o: one that is invalid lets nothing leave', (text, days) => {
  expect(ledgerDays(text === undefined ? {} : { REFLEX_LEDGER_RETENTION_DAYS: text })).toBe(days)
})
