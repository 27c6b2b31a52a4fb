import { describe, expect, test } from 'vitest'
import type { NewTransfer } from '../../../src/features/market/contract/transfer.ts'
import type { TransferOptions } from '../../../src/features/market/ledger/ledger.ts'
import { openLedger } from '../../support/ledger.ts'

const DAY = 86_400_000
const options: TransferOptions = { opens: ['scope:a', 'scope:b', 'scope:c'], privileged: false, caller: 'sam' }

/** Account a has 100. `send` makes each transfer a millisecond after the one before. */
function shop() {
  const { database, ledger, transaction } = openLedger()
  let now = 1
  transaction(() => ledger.mint({ id: 'mint', to: 'scope:a', amount: 100, memo: 'start' }, options, now))
  const send = (asked: Partial<NewTransfer>, more: Partial<TransferOptions> = {}) => {
    now += 1
    const whole = { id: 'none', debit: 'scope:a', credit: 'scope:b', amount: 5, ...asked }
    return transaction(() => ledger.transfer([whole], { ...options, ...more }, now))[0]?.status
  }
  return { database, ledger, transaction, send }
}

describe('a list', () => {
  test('of accounts is sorted by id, in pages; the last page has no next one', () => {
    const { ledger, send } = shop()
    send({ id: 'one' })
    const ids = (after: string | null, limit: number) => {
      const { items, next } = ledger.accounts({ after, limit })
      return [...items.map(({ id }) => id), next]
    }
    expect(ids(null, 3)).toEqual(['escrow', 'genesis', 'scope:a', 'scope:a'])
    expect(ids('scope:a', 3)).toEqual(['scope:b', null])
    expect(ids(null, 4)).toEqual(['escrow', 'genesis', 'scope:a', 'scope:b', null])
  })

  test('of transfers is in the order in which they were made, in pages; that of an account has both of its sides', () => {
    const { ledger, send } = shop()
    send({ id: 'out' })
    send({ id: 'back', debit: 'scope:b', credit: 'scope:a', amount: 1 })
    send({ id: 'other', debit: 'scope:b', credit: 'scope:c', amount: 1 })
    send({ id: 'last' })
    const page = (read: typeof ledger.history, after: string | null, limit: number) => {
      const { items, next } = read({ after, limit })
      return [...items.map(({ id }) => id), next]
    }
    const all: typeof ledger.history = (asked) => ledger.history(asked)
    const own: typeof ledger.history = (asked) => ledger.statement('scope:a', asked)
    expect(page(all, null, 10)).toEqual(['mint', 'out', 'back', 'other', 'last', null])
    expect(page(all, null, 2)).toEqual(['mint', 'out', '2'])
    expect(page(all, '2', 3)).toEqual(['back', 'other', 'last', null])
    expect(page(own, null, 3)).toEqual(['mint', 'out', 'back', '3'])
    expect(page(own, '3', 3)).toEqual(['last', null])
  })
})

describe('a transfer', () => {
  test('is shown with who made it and when, and with the ids that its client gave', () => {
    const { ledger, send } = shop()
    send({ id: 'held', pending: true, timeout_s: 2, code: 'rent', memo: 'May' })
    const ends = { debit: undefined, credit: undefined, amount: undefined }
    send({ id: 'end', pending_id: 'held', post: 3, ...ends }, { privileged: true })
    const [mint, held, end] = ledger.history({ after: null, limit: 10 }).items
    const between = { debit: 'scope:a', credit: 'scope:b' }
    expect(mint).toMatchObject({
      seq: 1,
      id: 'mint',
      code: 'mint',
      memo: 'start',
      kind: 'single',
      by: 'sam',
      at: '1970-01-01T00:00:00.001Z',
    })
    const opened = { kind: 'pending', amount: 5, code: 'rent', memo: 'May', pending_id: null, by: 'sam' }
    expect(held).toEqual({
      seq: 2,
      id: 'held',
      ...between,
      ...opened,
      expires_at: '1970-01-01T00:00:02.002Z',
      at: '1970-01-01T00:00:00.002Z',
    })
    const ended = { kind: 'post', amount: 3, code: null, memo: null, pending_id: 'held', by: null }
    expect(end).toEqual({ seq: 3, id: 'end', ...between, ...ended, expires_at: null, at: '1970-01-01T00:00:00.003Z' })
    expect([ledger.newest, ledger.newestAt]).toEqual([3, 3])
  })

  test('is found by the id that its client gave, of each account that used it', () => {
    const { ledger, send } = shop()
    send({ id: 'x' })
    send({ id: 'x', debit: 'scope:b', credit: 'scope:c', amount: 1 })
    send({ id: 'x2' })
    send({ id: 'agent:y' })
    expect(ledger.transfers(['x', 'agent:y', 'none']).map(({ id, debit }) => `${id} ${debit}`)).toEqual([
      'x scope:a',
      'x scope:b',
      'agent:y scope:a',
    ])
    // The second of these is the id under which x is kept.
    for (const id of ['x\nmore', 'x\nscope:a']) send({ id })
    expect([ledger.transfers(['x']).length, ledger.transfers(['x\nscope:a']).map(({ id }) => id)]).toEqual([2, ['x\nscope:a']])
  })
})

describe('an empty ledger', () => {
  test('has the two accounts of the market, and nothing is due', () => {
    const { ledger } = openLedger()
    expect(ledger.accounts({ after: null, limit: 10 })).toMatchObject({ items: [{ id: 'escrow' }, { id: 'genesis' }], next: null })
    expect([ledger.newest, ledger.newestAt, ledger.due, ledger.departedUpTo, ledger.mark('news')]).toEqual([0, 0, null, 0, 0])
    expect([ledger.account('scope:a'), ledger.ownerOf('scope:a')]).toEqual([null, null])
    expect(ledger.isDeparting(DAY, 2 * DAY)).toBe(false)
  })
})

describe('pending transfers that time out', () => {
  test('do so in the order of their times, and of equal times in that of their making', () => {
    const { ledger, transaction, send } = shop()
    for (const [id, timeout_s] of [
      ['late', 3],
      ['early', 1],
      ['never', undefined],
    ] as const)
      send({ id, pending: true, ...(timeout_s && { timeout_s }) })
    expect(ledger.due).toBe(1003)
    expect(transaction(() => ledger.expire(1002))).toEqual([])
    expect(transaction(() => ledger.expire(9000))).toEqual([
      { id: 'early\nscope:a', at: 1003 },
      { id: 'late\nscope:a', at: 3002 },
    ])
    expect(ledger.history({ after: '4', limit: 10 }).items.map(({ kind, at }) => [kind, Date.parse(at)])).toEqual([
      ['timeout', 1003],
      ['timeout', 3002],
    ])
    expect(ledger.account('scope:a')).toMatchObject({ available: 95, debits_pending: 5 })
    expect(ledger.due).toBeNull()
  })
})

describe('the limits of an account', () => {
  const limits = (per_day: number) => ({ per_transaction: null, per_hour: null, per_day, counterparties: ['scope:b'] })

  test('are those of the newest revision, and may be set before the account is used', () => {
    const { ledger } = shop()
    ledger.setLimits('scope:c', limits(5), 2)
    ledger.setLimits('scope:c', limits(9), 1)
    expect(ledger.account('scope:c')).toMatchObject({ balance: 0, limits: { per_day: 5 } })
    ledger.setLimits('scope:c', limits(9), 2)
    expect(ledger.account('scope:c')).toMatchObject({ limits: { per_day: 5 } })
    ledger.setLimits('scope:c', null, 3)
    expect(ledger.account('scope:c')).toMatchObject({ limits: null })
  })

  test('say whom it may pay; without any it may pay everybody', () => {
    const { ledger } = shop()
    expect(ledger.mayPay('scope:a', 'scope:c')).toBe(true)
    ledger.setLimits('scope:a', limits(5), 1)
    expect([ledger.mayPay('scope:a', 'scope:b'), ledger.mayPay('scope:a', 'scope:c'), ledger.mayPay('scope:x', 'scope:c')]).toEqual([
      true,
      false,
      true,
    ])
  })
})

describe('what is closed', () => {
  test('is the account with the id if nobody owns it, and never that of another owner', () => {
    const { ledger, transaction } = shop()
    const [kim, lee] = ['1'.repeat(16), '2'.repeat(16)]
    transaction(() => ledger.accountOfKey({ id: kim, name: 'kim', opens: true }))
    ledger.closeAccount('key:kim', lee)
    ledger.closeAccount('scope:a', lee)
    expect([ledger.account('key:kim')?.closed, ledger.account('scope:a')?.closed]).toEqual([false, true])
  })
})

describe('a caller that adds to the ledger', () => {
  test('has a bound for each day; the market has none, and nothing is counted for nothing', () => {
    const { ledger, transaction } = openLedger(':memory:', () => {}, { bytes: 100 })
    const grow = (bytes: number, caller: string | undefined, now: number) => transaction(() => ledger.mayGrow(bytes, caller, now))
    expect([grow(60, 'sam', 1), grow(41, 'sam', 2), grow(40, 'sam', 3), grow(1, 'sam', 4), grow(0, 'sam', 5)]).toEqual([
      true,
      false,
      true,
      false,
      true,
    ])
    expect([grow(101, undefined, 6), grow(101, 'lee', 7), grow(100, 'sam', DAY)]).toEqual([true, false, true])
  })
})
