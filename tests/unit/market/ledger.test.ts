import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { NewTransfer } from '../../../src/features/market/contract/transfer.ts'
import type { Ledger, TransferOptions } from '../../../src/features/market/ledger/ledger.ts'
import { ModelLedger } from '../../support/model-ledger.ts'
import { openLedger } from '../../support/ledger.ts'
import { assertProperty } from '../../support/property.ts'

const REAL = ['scope:a', 'scope:b', 'key:c']
const side = fc.constantFrom(...REAL, 'scope:nobody', 'genesis', 'escrow')
/** Few ids, so that they repeat and refer to each other. */
const id = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 25 }).map((n) => `t${n}`) },
  { weight: 1, arbitrary: fc.constant('deal:x') },
)
const amount = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constant(Number.MAX_SAFE_INTEGER))
const linked = fc.boolean().filter(Boolean)
const opened: fc.Arbitrary<NewTransfer> = fc
  .record(
    { id, debit: side, credit: side, amount, pending: fc.boolean(), timeout_s: fc.integer({ min: 1, max: 4 }), linked },
    { requiredKeys: ['id', 'debit', 'credit', 'amount'] },
  )
  .map(({ timeout_s, ...rest }) => (rest.pending && timeout_s !== undefined ? { ...rest, timeout_s } : rest))
const ended: fc.Arbitrary<NewTransfer> = fc
  .record(
    { id, pending_id: id, debit: side, post: fc.oneof(fc.constant(true as const), amount), linked },
    { requiredKeys: ['id', 'pending_id'] },
  )
  .map((asked) => (asked.post === undefined ? { ...asked, void: true as const } : asked))
const step = fc.oneof(
  { weight: 5, arbitrary: fc.array(fc.oneof(opened, ended), { minLength: 1, maxLength: 6 }).map((batch) => ({ batch })) },
  {
    weight: 1,
    arbitrary: fc.record({
      mint: id.filter((one) => one !== 'deal:x'),
      to: side.filter((to) => to !== 'genesis' && to !== 'escrow'),
      amount: fc.integer({ min: 1, max: 100 }),
    }),
  },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 3000 }).map((wait) => ({ wait })) },
)

type Step = { batch: NewTransfer[] } | { mint: string; to: string; amount: number } | { wait: number }

function answers(ledger: Ledger, asked: Step, now: number): string[] {
  if ('wait' in asked) return []
  const results =
    'batch' in asked
      ? ledger.transfer(asked.batch, { opens: REAL, privileged: false }, now)
      : [ledger.mint({ id: asked.mint, to: asked.to, amount: asked.amount }, { opens: REAL }, now)]
  return results.map(({ status, reason }) => reason ?? status)
}

function modelAnswers(model: ModelLedger, asked: Step, now: number): string[] {
  if ('wait' in asked) return []
  return 'batch' in asked ? model.transfer(asked.batch, now) : [model.mint(asked.mint, asked.to, asked.amount)]
}

test('the ledger does what a model of it does, with invalid requests among the valid', () => {
  assertProperty(
    'market/ledger',
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { database, ledger, transaction } = openLedger()
      const model = new ModelLedger(REAL)
      let now = 1_000_000
      for (const asked of steps) {
        if ('wait' in asked) now += asked.wait
        model.expire(now)
        transaction(() => ledger.expire(now))
        expect(transaction(() => answers(ledger, asked, now))).toEqual(modelAnswers(model, asked, now))
        for (const one of [...REAL, 'genesis', 'escrow']) {
          const account = ledger.account(one)
          expect([account?.balance ?? 0, account?.available ?? 0]).toEqual([model.balance(one), model.available(one)])
        }
        expect(ledger.audit()).toMatchObject({
          ok: true,
          problems: [],
          open_pendings: model.pendings.filter(({ end }) => end === null).length,
        })
      }
      database.close()
    }),
    { numRuns: 150 },
  )
})

/** Account a has 100, of which it may spend 10 a day. Each call of `send` is a request. */
function limitedTo10ADay() {
  const { ledger, transaction } = openLedger()
  const options = { opens: ['scope:a', 'scope:b'], privileged: false }
  transaction(() => ledger.mint({ id: 'mint', to: 'scope:a', amount: 100 }, options, 1))
  const limits = { per_transaction: null, per_hour: null, per_day: 10, counterparties: null }
  transaction(() => ledger.setLimits('scope:a', limits, 1))
  const send = (...asked: NewTransfer[]) =>
    transaction(() => ledger.transfer(asked, options, 2)).map(({ status, reason }) => reason ?? status)
  return { ledger, send }
}
const pays = (name: string, more: number) => ({ id: name, debit: 'scope:a', credit: 'scope:b', amount: more })
const reserves8 = { ...pays('reserved', 8), pending: true }
const posts3 = { id: 'posted', pending_id: 'reserved', post: 3 }

test('of a pending transfer that is posted in part, only the rest returns to the spending limit', () => {
  const { send } = limitedTo10ADay()
  expect(send(reserves8, posts3, pays('too much', 8), pays('the rest', 7))).toEqual([
    'created',
    'created',
    'exceeds_limit_per_day',
    'created',
  ])
})

test('the posted part counts toward the limit in later requests, and the returned part does not', () => {
  const { send } = limitedTo10ADay()
  expect([send(reserves8), send(posts3), send(pays('too much', 8)), send(pays('the rest', 7))].flat()).toEqual([
    'created',
    'created',
    'exceeds_limit_per_day',
    'created',
  ])
})

test('a chain of a transfer that was made before and a new one makes nothing', () => {
  const { ledger, send } = limitedTo10ADay()
  const first = { ...pays('first', 1), linked: true }
  expect(send(first, pays('second', 1))).toEqual(['created', 'created'])
  expect(send(first, pays('third', 1))).toEqual(['exists', 'linked_transfer_failed'])
  expect(send(pays('third', 1))).toEqual(['linked_transfer_failed'])
  expect(ledger.account('scope:b')).toMatchObject({ balance: 2 })
})

describe('an id belongs to the account that pays', () => {
  const options = { opens: ['scope:a', 'scope:b', 'scope:c'], privileged: false, caller: 'one' }
  function funded() {
    const { database, ledger, transaction } = openLedger()
    for (const name of ['a', 'b']) transaction(() => ledger.mint({ id: `mint-${name}`, to: `scope:${name}`, amount: 100 }, options, 1))
    const send = (asked: NewTransfer, more: Partial<TransferOptions> = {}) =>
      transaction(() => ledger.transfer([asked], { ...options, ...more }, 2)).map(({ status, reason }) => reason ?? status)[0]
    return { database, ledger, send }
  }
  const invoice = (debit: string, more: Partial<NewTransfer> = {}) => ({ id: 'invoice-18', debit, credit: 'scope:c', amount: 5, ...more })
  const voids = (more: Partial<NewTransfer> = {}): NewTransfer => ({ id: 'void', pending_id: 'invoice-18', void: true, ...more })

  test('so that a stranger who uses it first, or fails with it, takes it from nobody', () => {
    const { ledger, send } = funded()
    expect(send(invoice('scope:b'))).toBe('created')
    expect(send(invoice('scope:c', { credit: 'scope:b', amount: 50 }))).toBe('insufficient_funds')
    expect(send(invoice('scope:a'))).toBe('created')
    expect(send(invoice('scope:a'))).toBe('exists')
    expect(send(invoice('scope:a', { amount: 6 }))).toBe('exists_with_different_amount')
    const { items } = ledger.statement('scope:c', { after: null, limit: 10 })
    expect(items.map(({ id, debit }) => [id, debit])).toEqual([
      ['invoice-18', 'scope:b'],
      ['invoice-18', 'scope:a'],
    ])
    expect(ledger.audit()).toMatchObject({ ok: true })
  })

  test('and the end of a pending transfer names its payer, where several have the id', () => {
    const { ledger, send } = funded()
    for (const payer of ['scope:a', 'scope:b']) expect(send(invoice(payer, { pending: true }))).toBe('created')
    expect(send(voids())).toBe('pending_transfer_ambiguous')
    expect(send(voids(), { ends: [{ id: 'invoice-18', debit: 'scope:b' }] })).toBe('created')
    expect(send(voids({ debit: 'scope:a' }))).toBe('created')
    expect(send(voids({ debit: 'scope:a' }))).toBe('exists')
    expect(ledger.statement('scope:a', { after: null, limit: 10 }).items.at(-1)).toMatchObject({ id: 'void', pending_id: 'invoice-18' })
    expect(ledger.audit()).toMatchObject({ ok: true, open_pendings: 0 })
  })

  test('so that an end of what does not exist uses up an id of its caller alone', () => {
    const { send } = funded()
    expect(send(voids(), { caller: 'stranger' })).toBe('pending_transfer_not_found')
    expect(send(voids({ debit: 'scope:a' }), { caller: 'other' })).toBe('pending_transfer_not_found')
    expect(send(invoice('scope:a', { pending: true }))).toBe('created')
    expect(send(voids(), { caller: 'stranger' })).toBe('pending_transfer_not_found')
    expect(send(voids())).toBe('created')
  })

  test('and one that was made before that is still known to its payer', () => {
    const { database, send } = funded()
    const [id, debit, credit, amount] = ['invoice-18', 'scope:a', 'scope:c', 5]
    database
      .prepare(`INSERT INTO transfers (id, debit, credit, amount, kind, at) VALUES (?, ?, ?, ?, 'pending', 2)`)
      .run(id, debit, credit, amount)
    database.exec(`INSERT INTO pendings (id) VALUES ('${id}'); UPDATE accounts SET debits_pending = 5 WHERE id = '${debit}'`)
    database.exec(`INSERT INTO accounts (id, credits_pending) VALUES ('${credit}', 5)`)
    const old = { ...invoice('scope:a', { id: 'old', amount: 500 }) }
    database.prepare(`INSERT INTO failed VALUES ('old', ?, 'insufficient_funds', 2)`).run(JSON.stringify(old))
    expect(send(invoice('scope:a', { pending: true }))).toBe('exists')
    expect(send(old)).toBe('insufficient_funds')
    expect(send({ ...old, amount: 5 })).toBe('exists_with_different_amount')
    expect(send(invoice('scope:b'))).toBe('created')
    expect(send(voids())).toBe('created')
    expect(send(voids())).toBe('exists')
  })
})

describe('the account of a key', () => {
  const [FIRST, SECOND] = ['1'.repeat(16), '2'.repeat(16)]
  function keys() {
    const { ledger, transaction } = openLedger()
    const account = (id: string, name: string, opens = true) => transaction(() => ledger.accountOfKey({ id, name, opens })).account
    return { ledger, account }
  }

  test('has its name for the first key of the name, and the id for each other', () => {
    const { account } = keys()
    expect(account(FIRST, 'sam', false)).toBe('key:sam')
    expect(account(SECOND, 'sam')).toBe('key:sam')
    expect(account(FIRST, 'sam')).toBe(`key:${FIRST}`)
    expect(account(SECOND, 'sam')).toBe('key:sam')
  })

  test('is not taken by a key whose name is the id of another', () => {
    const { account } = keys()
    expect(account(SECOND, FIRST)).toBe(`key:${SECOND}`)
    expect(account(SECOND, 'admin')).toBe(`key:${SECOND}`)
    expect(account(FIRST, 'sam')).toBe('key:sam')
  })

  test('is closed with its key, whatever its id', () => {
    const { ledger, account } = keys()
    for (const id of [FIRST, SECOND]) account(id, 'sam')
    ledger.closeAccount('key:sam', SECOND)
    expect([ledger.account('key:sam')?.closed, ledger.account(`key:${SECOND}`)?.closed]).toEqual([false, true])
  })
})
