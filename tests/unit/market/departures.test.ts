import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { NewTransfer } from '../../../src/features/market/contract/transfer.ts'
import { digestOfId } from '../../../src/features/market/ledger/ids.ts'
import type { Ledger } from '../../../src/features/market/ledger/ledger.ts'
import { openLedger, passOf } from '../../support/ledger.ts'
import { assertProperty } from '../../support/property.ts'

const DAY = 86_400_000
const RETENTION = 2 * DAY
const ACCOUNTS = ['scope:a', 'scope:b', 'key:c']
const options = { opens: ACCOUNTS, privileged: false, caller: 'test' }
const LIMITS = { per_transaction: null, per_hour: 60, per_day: 100, counterparties: null }

const side = fc.constantFrom(...ACCOUNTS)
const amount = fc.integer({ min: 1, max: 60 })
const place = fc.nat(8)
const linked = fc.nat(5).map((n) => n === 0)
/**
 * A transfer whose ids are numbers: ids of the same epoch, or of a pending transfer that is open.
 */
const drawn = fc.oneof(
  fc.record({ kind: fc.constant('opened' as const), id: place, debit: side, credit: side, amount, days: fc.nat(4), linked }),
  fc.record({
    kind: fc.constant('ended' as const),
    id: place,
    of: fc.oneof(
      place.map((recent) => ({ recent })),
      fc.nat(3).map((open) => ({ open })),
    ),
    amount: fc.option(amount),
    linked,
  }),
)
type Drawn = typeof drawn extends fc.Arbitrary<infer One> ? One : never
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ batch: fc.array(drawn, { minLength: 1, maxLength: 5 }) }) },
  { weight: 2, arbitrary: fc.record({ mint: place, to: side, amount: fc.integer({ min: 1, max: 200 }) }) },
  { weight: 4, arbitrary: fc.record({ wait: fc.integer({ min: 1, max: 1.2 * DAY }) }) },
  { weight: 3, arbitrary: fc.record({ pass: fc.integer({ min: 1, max: 6 }) }) },
  { weight: 1, arbitrary: fc.record({ restart: fc.integer({ min: 1, max: 4 }) }) },
)

type Open = ReturnType<typeof openLedger>

/** Ids repeat within the retention alone: an epoch is as long. */
const idIn = (now: number, id: number): string => `${id}@${Math.floor(now / RETENTION)}`

function transferOf(one: Drawn, { database }: Open, now: number): NewTransfer {
  const [id, linked] = [idIn(now, one.id), one.linked]
  if (one.kind === 'opened') {
    const { debit, credit, amount: sum, days } = one
    const pending = days > 0 ? { pending: true, ...(days < 4 && { timeout_s: days * 86_400 }) } : {}
    return { id, debit, credit, amount: sum, linked, ...pending }
  }
  const open = database.prepare('SELECT id FROM pendings ORDER BY id').all()
  const kept = 'open' in one.of ? String(open[one.of.open]?.['id'] ?? 'none') : idIn(now, one.of.recent)
  const [pending_id = '', debit] = kept.split('\n')
  const ends = one.amount === null ? { void: true as const } : { post: one.amount }
  return { id, pending_id, linked, ...(debit !== undefined && { debit }), ...ends }
}

const stateOf = (ledger: Ledger) => {
  const { checkpoint: _checkpoint, ...audit } = ledger.audit()
  return { audit, newest: ledger.newest, accounts: ledger.accounts({ after: null, limit: 10 }).items }
}

/** A ledger that history leaves, beside one that keeps all of it. */
class Pair {
  readonly kept = openLedger()
  readonly left = openLedger()
  ledger = this.left.ledger
  now = 1000 * DAY
  readonly differences: unknown[] = []
  /** All that was made, as it was asked. */
  readonly made: { asked: NewTransfer[]; minted: boolean }[] = []

  constructor() {
    this.both((ledger) => ledger.setLimits('scope:b', LIMITS, 1))
    for (const credit of ACCOUNTS) this.ask([{ id: `start-${credit}`, debit: 'genesis', credit, amount: 300 }], true)
  }

  both<Made>(work: (ledger: Ledger) => Made): Made {
    const [expected, found] = [this.kept.transaction(() => work(this.kept.ledger)), this.left.transaction(() => work(this.ledger))]
    if (JSON.stringify(found) !== JSON.stringify(expected)) this.differences.push({ expected, found })
    return found
  }

  ask(asked: NewTransfer[], minted: boolean): void {
    const results = this.both((ledger) => answersOf(ledger, { asked, minted }, this.now))
    if (results.every(({ status }) => status === 'created')) this.made.push({ asked, minted })
  }

  pass(limit: number): void {
    passOf({ ledger: this.ledger, transaction: this.left.transaction, before: this.now - RETENTION, now: this.now }, { limit })
  }
}

function answersOf(ledger: Ledger, { asked, minted }: { asked: NewTransfer[]; minted: boolean }, now: number) {
  if (!minted) return ledger.transfer(asked, options, now)
  return asked.map(({ id, credit: to = '', amount: sum = 0 }) => ledger.mint({ id, to, amount: sum }, options, now))
}

test('a ledger that history leaves does the same as one that keeps all of it, and nothing is made twice', { tags: ['simulation'] }, () => {
  let [left, histories] = [0, 0]
  assertProperty(
    'market/departures',
    fc.property(fc.array(step, { minLength: 10, maxLength: 60 }), (steps) => {
      const pair = new Pair()
      for (const one of steps) {
        if ('wait' in one) pair.now += one.wait
        pair.both((ledger) => ledger.expire(pair.now))
        if ('batch' in one) {
          const asked = one.batch.map((transfer) => transferOf(transfer, pair.kept, pair.now))
          pair.ask(asked, false)
        } else if ('mint' in one) {
          pair.ask([{ id: idIn(pair.now, one.mint), debit: 'genesis', credit: one.to, amount: one.amount }], true)
        } else if ('pass' in one) {
          pair.pass(one.pass)
        } else if ('restart' in one) {
          pair.ledger = pair.left.reopen()
          pair.differences.push(...pair.left.transaction(() => pair.ledger.check(one.restart)))
        }
        expect(pair.differences).toEqual([])
        expect(stateOf(pair.ledger)).toEqual(stateOf(pair.kept.ledger))
      }
      pair.now += RETENTION + DAY
      pair.both((ledger) => ledger.expire(pair.now))
      pair.pass(3)
      const before = stateOf(pair.ledger)
      expect(before).toEqual(stateOf(pair.kept.ledger))
      expect(before.audit).toMatchObject({ ok: true, problems: [] })
      for (const one of pair.made) {
        const results = pair.left.transaction(() => answersOf(pair.ledger, one, pair.now))
        expect(results.map(({ status }) => status)).not.toContain('created')
      }
      expect(stateOf(pair.ledger)).toEqual(before)
      left += pair.ledger.audit().checkpoint?.transfers ?? 0
      histories += 1
      for (const { database } of [pair.kept, pair.left]) database.close()
    }),
    { numRuns: 25 },
  )
  expect(left / histories).toBeGreaterThan(6)
})

/** Accounts a and b with 100 each. Each transfer is a minute after the one before. */
function shop() {
  const { database, ledger, transaction, reopen } = openLedger()
  let now = 1000 * DAY
  for (const [index, to] of ACCOUNTS.slice(0, 2).entries())
    transaction(() => ledger.mint({ id: `mint-${index}`, to, amount: 100 }, options, now))
  const send = (asked: Partial<NewTransfer>) => {
    now += 60_000
    const whole = asked.pending_id === undefined ? { debit: 'scope:a', credit: 'scope:b', amount: 5, ...asked } : asked
    return transaction(() => ledger.transfer([{ id: 'none', ...whole }], options, now)).map(({ status, reason }) => reason ?? status)[0]
  }
  const pass = (in_use: string[] = []) => passOf({ ledger, transaction, before: now - RETENTION, now }, { in_use, limit: 2 })
  const ids = () => ledger.history({ after: null, limit: 100 }).items.map(({ id }) => id)
  const wait = (ms: number) => (now += ms)
  return { database, ledger, transaction, reopen, send, pass, ids, wait }
}

describe('what leaves the history', () => {
  test('is older than the retention; the newest transfer stays, so that no seq repeats', () => {
    const { ledger, send, pass, ids, wait } = shop()
    send({ id: 'old' })
    wait(RETENTION)
    send({ id: 'young' })
    pass()
    expect(ids()).toEqual(['young'])
    wait(2 * RETENTION)
    pass()
    expect(ids()).toEqual(['young'])
    expect(ledger.audit()).toMatchObject({ ok: true, transfers: 4, checkpoint: { transfers: 3 } })
  })

  test('is no pending transfer that is open, nor one whose end is young', () => {
    const { send, pass, ids, wait } = shop()
    send({ id: 'open', pending: true })
    send({ id: 'ended', pending: true })
    wait(RETENTION)
    send({ id: 'end', pending_id: 'ended', post: 3 })
    send({ id: 'newest' })
    pass()
    expect(ids()).toEqual(['open', 'ended', 'end', 'newest'])
    wait(RETENTION + DAY)
    pass()
    expect(ids()).toEqual(['open', 'newest'])
    expect(send({ id: 'late', pending_id: 'open', post: true })).toBe('created')
  })

  test('is nothing that something unfinished refers to, nor the opening of what does', () => {
    const { send, pass, ids, wait } = shop()
    send({ id: 'agent:held', pending: true })
    send({ id: 'agent:end', pending_id: 'agent:held', void: true })
    send({ id: 'agent:single' })
    wait(RETENTION + DAY)
    send({ id: 'newest' })
    pass(['agent:end', 'agent:single'])
    expect(ids()).toEqual(['agent:held', 'agent:end', 'agent:single', 'newest'])
    wait(DAY)
    pass()
    expect(ids()).toEqual(['newest'])
  })

  test('is nothing that D1 or the news lack', () => {
    const { ledger, transaction, send, wait } = shop()
    send({ id: 'one' })
    const now = wait(RETENTION + DAY)
    send({ id: 'two' })
    const portion = (copied: number, news: number) => {
      transaction(() => ledger.setMark('copied', copied))
      transaction(() => ledger.setMark('news', news))
      return ledger
        .departing({ before: now - RETENTION, limit: 9, isInUse: () => new Set() })
        .groups.flat()
        .map(({ seq }) => seq)
    }
    expect([portion(9, 9), portion(2, 9), portion(9, 1), portion(9, 0)]).toEqual([[1, 2, 3], [1, 2], [1], []])
  })

  test('is found in pages, up to the first that ends with something young', () => {
    const { ledger, transaction, send, wait } = shop()
    const first = wait(0) + 60_000
    for (const id of ['a', 'b', 'c', 'd']) send({ id })
    const find = (after: number, limit: number, before = wait(0) + 1) => {
      transaction(() => ['copied', 'news', 'departing'].forEach((mark, index) => ledger.setMark(mark, index < 2 ? 99 : after)))
      const { groups, next, is_last } = ledger.departing({ before, limit, isInUse: () => new Set() })
      return [groups.flat().map(({ seq }) => seq), next, is_last]
    }
    expect([find(0, 3), find(3, 3), find(6, 3)]).toEqual([
      [[1, 2, 3], 3, false],
      [[4, 5], 6, false],
      [[], 6, true],
    ])
    expect([find(3, 9), find(0, 3, first), find(0, 3, first + 1)]).toEqual([
      [[4, 5], 6, true],
      [[1, 2], 3, true],
      [[1, 2, 3], 3, false],
    ])
  })

  test('begins once a day, where anything is old', () => {
    const { ledger, send, pass, wait } = shop()
    const now = wait(0)
    expect([now - RETENTION, now, now + 1].map((before) => ledger.isDeparting(before, now))).toEqual([false, false, true])
    send({ id: 'one' })
    const later = wait(RETENTION + DAY)
    expect(ledger.isDeparting(later - RETENTION, later)).toBe(true)
    pass()
    expect(ledger.isDeparting(later, later)).toBe(false)
    expect(ledger.isDeparting(later + DAY - RETENTION, later + DAY - 1)).toBe(false)
    expect(ledger.isDeparting(later + DAY - RETENTION, later + DAY)).toBe(true)
  })

  test('is over with the last page and the last id that failed, and begins again a day later', () => {
    const { database, ledger, transaction, send, pass, wait } = shop()
    for (let failed = 1; failed <= 7; failed += 1) send({ id: `broke ${failed}`, amount: 1000 })
    const now = wait(RETENTION + DAY)
    send({ id: 'newest' })
    transaction(() => ['copied', 'news'].forEach((mark) => ledger.setMark(mark, ledger.newest)))
    const before = now - RETENTION
    const portion = ledger.departing({ before, limit: 2, isInUse: () => new Set() })
    expect(transaction(() => ledger.depart(portion, { before, limit: 2, now }))).toBe(false)
    expect(ledger.isDeparting(before, now)).toBe(true)
    pass()
    expect(database.prepare('SELECT count(*) AS n FROM failed').get()).toEqual({ n: 0 })
    expect(ledger.isDeparting(now, now)).toBe(false)
  })

  test('leaves by this way alone: the database refuses any other, and an open pending transfer always', () => {
    const { database, send } = shop()
    send({ id: 'open', pending: true })
    send({ id: 'newest' })
    expect(() => database.exec('DELETE FROM transfers WHERE seq = 1')).toThrow('never deleted')
    database.exec('INSERT INTO departing VALUES (1), (3)')
    expect(() => database.exec('DELETE FROM transfers WHERE seq = 3')).toThrow('never deleted')
    expect(() => database.exec('DELETE FROM transfers WHERE seq = 1')).not.toThrow()
  })
})

describe('an id whose transfer has left', () => {
  function afterLeaving() {
    const all = shop()
    const { database, transaction, ledger, send, wait, pass } = all
    send({ id: 'paid' })
    send({ id: 'broke', amount: 1000 })
    send({ id: 'ends nothing', pending_id: 'unknown', void: true })
    // Before ids belonged to accounts, they were kept as they are.
    database.exec(
      `INSERT INTO transfers (id, debit, credit, amount, kind, at) VALUES ('plain', 'scope:a', 'scope:b', 5, 'single', ${wait(1)})`,
    )
    database.exec(`UPDATE accounts SET debits_posted = debits_posted + 5 WHERE id = 'scope:a'`)
    database.exec(`UPDATE accounts SET credits_posted = credits_posted + 5 WHERE id = 'scope:b'`)
    const failed = (id: string, asked: Partial<NewTransfer>) =>
      database
        .prepare(`INSERT INTO failed VALUES (?, ?, 'insufficient_funds', ?)`)
        .run(id, JSON.stringify({ id, debit: 'scope:a', ...asked }), wait(1))
    failed('plain broke', { credit: 'scope:b', amount: 1000 })
    failed('plain end', { pending_id: 'unknown', void: true })
    wait(RETENTION + DAY)
    send({ id: 'newest' })
    pass()
    expect(ledger.audit()).toMatchObject({ ok: true, checkpoint: { transfers: 4 } })
    expect(database.prepare('SELECT count(*) AS n FROM failed').get()).toEqual({ n: 0 })
    const balances = () => ACCOUNTS.map((id) => ledger.account(id)?.balance)
    return { ...all, transaction, balances }
  }

  test.each([
    ['paid', {}],
    ['paid', { amount: 6 }],
    ['broke', { amount: 1000 }],
    ['broke', { amount: 1 }],
    ['plain', {}],
    ['plain broke', { amount: 1 }],
  ])('is refused, and nothing is done: %s with %o', (id, fields) => {
    const { send, balances } = afterLeaving()
    const before = balances()
    expect(send({ id, ...fields })).toBe('id_used_long_ago')
    expect(send({ id, ...fields })).toBe('id_used_long_ago')
    expect(balances()).toEqual(before)
  })

  test('is free for another account, and ends of what does not exist are still refused', () => {
    const { send } = afterLeaving()
    expect(send({ id: 'paid', debit: 'scope:b', credit: 'scope:a' })).toBe('created')
    expect(send({ id: 'plain end' })).toBe('created')
    expect(send({ id: 'ends nothing', pending_id: 'unknown', void: true })).toBe('id_used_long_ago')
    expect(send({ id: 'end', pending_id: 'paid', debit: 'scope:a', void: true })).toBe('pending_transfer_not_found')
  })

  test('ends no pending transfer of another account, if it named no account', () => {
    const { send, pass, wait } = shop()
    send({ id: 'held', pending: true })
    const end = { id: 'end', pending_id: 'held', void: true as const }
    expect(send(end)).toBe('created')
    wait(RETENTION + DAY)
    send({ id: 'newest' })
    pass()
    expect(send({ id: 'held', debit: 'scope:b', credit: 'scope:a', pending: true })).toBe('created')
    expect(send(end)).toBe('id_used_long_ago')
    expect(send({ ...end, debit: 'scope:b' })).toBe('created')
  })

  test('fails the chain that it is in, and uses up the ids of the others', () => {
    const { ledger, transaction, wait } = afterLeaving()
    const chain = ['paid', 'new'].map((id, index) => ({ id, debit: 'scope:a', credit: 'scope:b', amount: 5, linked: index === 0 }))
    const results = () => transaction(() => ledger.transfer(chain, options, wait(1))).map(({ reason }) => reason)
    expect(results()).toEqual(['id_used_long_ago', 'linked_transfer_failed'])
    expect(results()).toEqual(['id_used_long_ago', 'linked_transfer_failed'])
  })
})

describe('the audit', () => {
  /** Two checkpoints, an open pending transfer and two others. */
  function twice() {
    const all = shop()
    const { send, wait, pass } = all
    for (const round of [1, 2]) {
      send({ id: `one-${round}`, amount: 7 })
      send({ id: `back-${round}`, debit: 'scope:b', credit: 'scope:a', amount: 3 })
      send({ id: `open-${round}`, pending: true })
      wait(RETENTION + DAY)
      send({ id: `later-${round}` })
      pass()
    }
    return all
  }

  test('proves all of the history across two checkpoints, also after a restart', () => {
    const { ledger, transaction, reopen, ids } = twice()
    expect(ids()).toEqual(['open-1', 'open-2', 'later-2'])
    const audit = { ok: true, problems: [], minted: 200, transfers: 10, open_pendings: 2, checkpoint: { transfers: 7 } }
    expect(ledger.audit()).toMatchObject(audit)
    const again = reopen()
    expect(transaction(() => again.check())).toEqual([])
    expect(again.audit()).toEqual(ledger.audit())
  })

  test('has at the checkpoint what was paid, and of pending transfers what was posted', () => {
    const { database, ledger, send, wait, pass } = shop()
    send({ id: 'held', pending: true, amount: 9 })
    send({ id: 'end', pending_id: 'held', post: 3 })
    send({ id: 'dropped', pending: true, credit: 'key:c' })
    send({ id: 'drop', pending_id: 'dropped', void: true })
    wait(RETENTION + DAY)
    send({ id: 'newest' })
    pass()
    expect(ledger.audit()).toMatchObject({ ok: true, problems: [], checkpoint: { transfers: 6 } })
    expect(database.prepare('SELECT account, debits, credits FROM departed_sums ORDER BY account').all()).toEqual([
      { account: 'genesis', debits: 200, credits: 0 },
      { account: 'scope:a', debits: 3, credits: 100 },
      { account: 'scope:b', debits: 0, credits: 103 },
    ])
    expect(ledger.departedUpTo).toBe(6)
  })

  test('adds up for an object that wakes later than its checkpoint, from which transfers have left since', () => {
    const { database, ledger, transaction, reopen, send, wait, pass } = shop()
    expect(transaction(() => ledger.check(1))).toEqual([])
    send({ id: 'one', amount: 7 })
    send({ id: 'held', pending: true })
    send({ id: 'end', pending_id: 'held', post: 3 })
    wait(RETENTION + DAY)
    send({ id: 'newest' })
    pass()
    expect(transaction(() => reopen().check())).toEqual([])
    expect(database.prepare('SELECT count(*) AS n FROM departing').get()).toEqual({ n: 0 })
  })

  test('has a digest of all of each transfer that has left', () => {
    const digestWith = (memo: string) => {
      const { ledger, send, wait, pass } = shop()
      send({ id: 'one', memo })
      wait(RETENTION + DAY)
      send({ id: 'newest' })
      pass()
      return ledger.audit().checkpoint?.digest
    }
    expect(digestWith('May')).toBe(digestWith('May'))
    expect(digestWith('May')).not.toBe(digestWith('June'))
  })

  test.each(['debits', 'credits'])('names what was paid where the %s of the checkpoint differ from it', (side) => {
    const { database, ledger } = twice()
    database.exec(`UPDATE departed_sums SET ${side} = ${side} + 1 WHERE account = 'scope:a'`)
    expect(ledger.audit().problems).toContainEqual(expect.stringMatching(/^At the checkpoint, debits are \d+ and credits \d+, and \d+ was/))
  })

  test('fails if sums of before are put back everywhere but in the checkpoint', () => {
    const { database, ledger } = twice()
    database.exec('PRAGMA ignore_check_constraints = ON')
    database.exec(`UPDATE accounts SET debits_posted = debits_posted - (SELECT debits FROM departed_sums WHERE account = id),
      credits_posted = credits_posted - (SELECT credits FROM departed_sums WHERE account = id) WHERE id IN (SELECT account FROM departed_sums)`)
    database.exec('DELETE FROM departed_sums')
    const problems = ledger.audit().problems.filter((problem) => !problem.includes('overdrawn'))
    expect(problems).toEqual([expect.stringContaining('At the checkpoint, debits are 0 and credits 0')])
  })

  test('fails if money is moved between accounts, at the checkpoint and in use', () => {
    const { database, ledger } = twice()
    for (const [account, more] of [
      ['scope:a', 1],
      ['scope:b', -1],
    ] as const) {
      database.prepare('UPDATE departed_sums SET credits = credits + ? WHERE account = ?').run(more, account)
      database.prepare('UPDATE accounts SET credits_posted = credits_posted + ? WHERE id = ?').run(more, account)
    }
    expect(ledger.audit().problems).toEqual(['scope:a', 'scope:b'].map((account) => `${account}: its sums at the checkpoint were altered.`))
  })

  test.each([
    ['a checkpoint says other counts', 'UPDATE departures SET transfers = transfers - 1 WHERE n = 1'],
    ['the newest checkpoint says another time', 'UPDATE departures SET at = at + 1 WHERE n = (SELECT max(n) FROM departures)'],
    ['a checkpoint has another content', `UPDATE departures SET content = 'other' WHERE n = 2`],
    ['a checkpoint has another digest', `UPDATE departures SET digest = 'other' WHERE n = 1`],
    ['the first checkpoint is gone', 'DELETE FROM departures WHERE n = 1'],
    ['the newest checkpoint is gone', 'DELETE FROM departures WHERE n = (SELECT max(n) FROM departures)'],
    ['an account has other sums', `UPDATE departed_sums SET debits = debits + 1 WHERE account = 'scope:a'`],
    ['two accounts have other sums, which add up', 'UPDATE departed_sums SET credits = credits + 1, debits = debits + 1'],
    ['an account has no sums', `DELETE FROM departed_sums WHERE account = 'scope:b'`],
    ['a kept transfer has another amount', 'UPDATE transfers SET amount = amount + 1 WHERE seq = (SELECT max(seq) FROM transfers)'],
    ['a kept pending transfer has another amount', 'UPDATE transfers SET amount = amount + 1 WHERE seq = (SELECT min(seq) FROM transfers)'],
    ['a kept transfer has another payer', `UPDATE transfers SET debit = 'genesis' WHERE seq = (SELECT max(seq) FROM transfers)`],
    ['a kept transfer is of another kind', `UPDATE transfers SET kind = 'pending' WHERE seq = (SELECT max(seq) FROM transfers)`],
    ['a kept transfer is gone', 'DELETE FROM transfers WHERE seq = (SELECT max(seq) FROM transfers)'],
    ['a balance is another one', `UPDATE accounts SET credits_posted = credits_posted + 1 WHERE id = 'scope:a'`],
  ])('fails if %s', (_, change) => {
    const { database, ledger } = twice()
    database.exec('DROP TRIGGER transfers_change; DROP TRIGGER transfers_delete')
    database.exec(change)
    const { ok, problems } = ledger.audit()
    expect(ok).toBe(false)
    expect(problems.length).toBeGreaterThan(0)
  })
})

test('what is kept of an id that is used up is short, whatever the id is', () => {
  const digests = ['x\nscope:a', `${'x'.repeat(200)}\nscope:a`].map(digestOfId)
  expect(digests.map((digest) => digest.length)).toEqual([22, 22])
  expect(digests[0]).not.toBe(digests[1])
})
