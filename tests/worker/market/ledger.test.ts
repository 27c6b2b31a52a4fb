import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, test } from 'vitest'
import type { NewTransfer } from '../../../src/contract/market/transfer.ts'
import { runAlarm } from '../../support/scopes.ts'

let ledgers = 0
/** A ledger of its own, in which these accounts exist. */
function freshLedger(...opens: string[]) {
  const name = `ledger-${++ledgers}`
  const stub = env.LEDGER.getByName(name)
  const by = { name: 'test', opens }
  const transfer = async (...transfers: NewTransfer[]) => (await stub.transfer(transfers, by)).map(({ status, reason }) => reason ?? status)
  const mint = (to: string, amount: number) => stub.mint({ id: `mint:${to}`, to, amount }, by)
  return { stub, transfer, mint }
}
const [A, B] = ['scope:a', 'scope:b']

test('a pending transfer reserves its amount, and ends once', async () => {
  const { stub, transfer, mint } = freshLedger(A, B)
  await mint(A, 100)
  expect(await transfer({ id: 'p', debit: A, credit: B, amount: 60, pending: true })).toEqual(['created'])
  expect(await stub.account(A)).toMatchObject({ balance: 100, available: 40, debits_pending: 60, debits_posted: 0 })
  expect(await transfer({ id: 'q', debit: A, credit: B, amount: 41 })).toEqual(['insufficient_funds'])
  expect(await transfer({ id: 'over', pending_id: 'p', post: 61 })).toEqual(['exceeds_pending_amount'])
  expect(await transfer({ id: 'post', pending_id: 'p', post: 50 })).toEqual(['created'])
  expect(await transfer({ id: 'post2', pending_id: 'p', post: true })).toEqual(['pending_transfer_already_posted'])
  expect(await transfer({ id: 'void', pending_id: 'p', void: true })).toEqual(['pending_transfer_already_posted'])
  expect(await stub.account(A)).toMatchObject({ balance: 50, available: 50, debits_pending: 0, debits_posted: 50 })
  expect(await stub.account(B)).toMatchObject({ balance: 50, available: 50, credits_pending: 0 })
  expect(await stub.audit()).toMatchObject({ ok: true, minted: 100, debits: 150, credits: 150, open_pendings: 0, problems: [] })
})

test('the history is never changed or deleted', async () => {
  const { stub, mint } = freshLedger(A)
  await mint(A, 5)
  await runInDurableObject(stub as never, (_, { storage }: DurableObjectState) => {
    expect(() => storage.sql.exec('UPDATE transfers SET amount = 6')).toThrow('never changed')
    expect(() => storage.sql.exec('DELETE FROM transfers')).toThrow('never deleted')
    expect(() => storage.sql.exec(`UPDATE accounts SET debits_posted = 6 WHERE id = '${A}'`)).toThrow('CHECK')
  })
})

test('D1 has a copy of the history and of the accounts', async () => {
  // Copies of other tests' ledgers, which begin at the same `seq`.
  await env.DB.batch([env.DB.prepare('DELETE FROM ledger_transfers'), env.DB.prepare('DELETE FROM ledger_accounts')])
  const { stub, mint, transfer } = freshLedger(A, B)
  await mint(A, 5)
  await transfer({ id: 'copied', debit: A, credit: B, amount: 2, memo: 'thanks' })
  await runAlarm(stub as never)
  const { results } = await env.DB.prepare(`SELECT * FROM ledger_transfers WHERE id = 'copied'`).all()
  expect(results).toMatchObject([{ debit: A, credit: B, amount: 2, kind: 'single', memo: 'thanks' }])
  const accounts = await env.DB.prepare(`SELECT * FROM ledger_accounts WHERE id IN (?, ?) ORDER BY id`).bind(A, B).all()
  expect(accounts.results).toMatchObject([
    { id: A, balance: 3, available: 3 },
    { id: B, balance: 2, available: 2 },
  ])
})
