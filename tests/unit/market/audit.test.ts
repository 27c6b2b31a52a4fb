import { describe, expect, test } from 'vitest'
import type { NewTransfer } from '../../../src/features/market/contract/transfer.ts'
import { openLedger } from '../../support/ledger.ts'

const options = { opens: ['scope:a', 'scope:b'], privileged: false, caller: 'test' }

/**
 * Account a has 100. It paid 30 to b and reserved 20 for b. The history has five transfers, since
 * another one was reserved and voided.
 */
function books() {
  const { database, ledger, transaction, reopen } = openLedger()
  transaction(() => ledger.mint({ id: 'mint', to: 'scope:a', amount: 100 }, options, 1))
  const send = (...asked: NewTransfer[]) => transaction(() => ledger.transfer(asked, options, 2)).map(({ status }) => status)
  const pays = { debit: 'scope:a', credit: 'scope:b' }
  send(
    { id: 'paid', amount: 30, ...pays },
    { id: 'held', amount: 20, pending: true, ...pays },
    { id: 'dropped', amount: 5, pending: true, ...pays },
  )
  send({ id: 'drop', pending_id: 'dropped', void: true })
  database.exec('PRAGMA ignore_check_constraints = ON; DROP TRIGGER transfers_change; DROP TRIGGER transfers_delete')
  const problemsAfter = (change: string) => {
    database.exec(change)
    return ledger.audit().problems
  }
  return { database, ledger, transaction, reopen, send, pays, problemsAfter }
}

describe('the audit', () => {
  test('has the sums of all accounts', () => {
    const found = { minted: 100, debits: 130, credits: 130, accounts: 4, open_pendings: 1, transfers: 5, checkpoint: null }
    expect(books().ledger.audit()).toEqual({ ok: true, problems: [], ...found })
  })

  test('names an account that has spent more than it had, with what is reserved', () => {
    const { problemsAfter } = books()
    expect(
      problemsAfter(`UPDATE transfers SET amount = 80 WHERE id LIKE 'paid%';
      UPDATE accounts SET debits_posted = 80 WHERE id = 'scope:a'; UPDATE accounts SET credits_posted = 80 WHERE id = 'scope:b'`),
    ).toEqual([])
    expect(
      problemsAfter(`UPDATE transfers SET amount = 81 WHERE id LIKE 'paid%';
      UPDATE accounts SET debits_posted = 81 WHERE id = 'scope:a'; UPDATE accounts SET credits_posted = 81 WHERE id = 'scope:b'`),
    ).toEqual(['scope:a is overdrawn.'])
  })

  test('names an account that has transfers and is gone, and each sum that is another one', () => {
    const { problemsAfter } = books()
    expect(problemsAfter(`DELETE FROM accounts WHERE id = 'scope:b'`)).toEqual(['scope:b has transfers and no account.'])
    expect(problemsAfter(`UPDATE accounts SET debits_pending = 19, debits_posted = 29 WHERE id = 'scope:a'`)).toEqual([
      'scope:a: debits_pending is 19, and 20 by the history.',
      'scope:a: debits_posted is 29, and 30 by the history.',
      'scope:b has transfers and no account.',
    ])
  })

  test('fails if an account is paid what nobody paid, by the checkpoint of what has left', () => {
    const { problemsAfter } = books()
    const problems = problemsAfter(`INSERT INTO departed_sums VALUES ('scope:b', 0, 7, 1, '')`)
    expect(problems).toContain('Posted debits are 130, and credits 137.')
  })

  test('fails if a pending transfer that is open is not kept as pending', () => {
    expect(books().problemsAfter('DELETE FROM pendings')).toEqual(['1 transfers are pending by the history, and 0 are kept as pending.'])
  })

  test('fails if one that has ended is kept as pending, in the place of another or beside it', () => {
    const ended = (change: string) => books().problemsAfter(change).join('')
    const dropped = `(SELECT id FROM transfers WHERE id LIKE 'dropped%')`
    expect(ended(`INSERT INTO pendings (id) VALUES (${dropped})`)).toContain('and 2 are kept as pending')
    expect(ended(`UPDATE pendings SET id = ${dropped}`)).toContain('1 transfers are pending by the history, and 1 are kept as pending')
  })
})

describe('an object that wakes', () => {
  const checkpointOf = ({ database, ledger }: ReturnType<typeof books>) => ({
    seq: ledger.mark('checkpoint'),
    sums: database.prepare('SELECT * FROM checkpoint ORDER BY account').all(),
  })

  test('adds up all transfers until there are as many as a checkpoint needs', () => {
    const all = books()
    expect(all.transaction(() => all.ledger.check(6))).toEqual([])
    expect(checkpointOf(all)).toEqual({ seq: 0, sums: [] })
    expect(all.transaction(() => all.ledger.check(5))).toEqual([])
    const none = { debits_pending: 0, debits_posted: 0, credits_pending: 0, credits_posted: 0 }
    expect(checkpointOf(all)).toEqual({
      seq: 5,
      sums: [
        { account: 'genesis', ...none, debits_posted: 100 },
        { account: 'scope:a', ...none, debits_pending: 20, debits_posted: 30, credits_posted: 100 },
        { account: 'scope:b', ...none, credits_pending: 20, credits_posted: 30 },
      ],
    })
  })

  test('adds up only what came after the checkpoint, which then follows', () => {
    const all = books()
    all.transaction(() => all.ledger.check(5))
    all.send({ id: 'more', amount: 1, ...all.pays })
    all.database.exec(`UPDATE transfers SET amount = 31 WHERE id LIKE 'paid%'`)
    expect(all.transaction(() => all.reopen().check(2))).toEqual([])
    expect(all.ledger.mark('checkpoint')).toBe(5)
    expect(all.transaction(() => all.reopen().check(1))).toEqual([])
    expect(all.ledger.mark('checkpoint')).toBe(6)
  })

  test('makes no checkpoint of sums that are wrong, and transfers nothing', () => {
    const all = books()
    all.database.exec(`UPDATE accounts SET credits_posted = 31 WHERE id = 'scope:b'`)
    expect(all.transaction(() => all.ledger.check(1))).toEqual(['scope:b: credits_posted is 31, and 30 by the history.'])
    expect(all.ledger.mark('checkpoint')).toBe(0)
    expect(() => all.send({ id: 'more', amount: 1, ...all.pays })).toThrow('The ledger does not add up: scope:b')
  })
})
