import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { NewTransfer } from '../../../src/contract/market/transfer.ts'
import type { Ledger } from '../../../src/ledger/ledger.ts'
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
  .record({ id, pending_id: id, post: fc.oneof(fc.constant(true as const), amount), linked }, { requiredKeys: ['id', 'pending_id'] })
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
          open_pendings: [...model.pendings.values()].filter(({ end }) => end === null).length,
        })
      }
      database.close()
    }),
    { numRuns: 300 },
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
