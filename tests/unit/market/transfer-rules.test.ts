import { describe, expect, test } from 'vitest'
import { MOST_SCRIP, type NewTransfer } from '../../../src/features/market/contract/transfer.ts'
import type { SpendingLimits } from '../../../src/features/market/contract/account.ts'
import type { TransferOptions } from '../../../src/features/market/ledger/ledger.ts'
import { openLedger } from '../../support/ledger.ts'

const NAMES = ['scope:a', 'scope:b', 'scope:c']
const HOUR = 3_600_000
const NONE: SpendingLimits = { per_transaction: null, per_hour: null, per_day: null, counterparties: null }

/** Accounts a, b and c; a and b have 100 each. */
function shop() {
  const { database, ledger, transaction } = openLedger()
  const options: TransferOptions = { opens: NAMES, privileged: false, caller: 'sam' }
  const mint = (id: string, to: string, amount: number, opens: readonly string[] = NAMES) =>
    transaction(() => ledger.mint({ id, to, amount }, { opens }, 1)).reason ?? 'created'
  for (const name of ['a', 'b']) mint(`mint-${name}`, `scope:${name}`, 100)
  const all = (batch: readonly NewTransfer[], more: Partial<TransferOptions> = {}, now = 2) =>
    transaction(() => ledger.transfer(batch, { ...options, ...more }, now)).map(({ status, reason }) => reason ?? status)
  const send = (asked: NewTransfer, more?: Partial<TransferOptions>, now?: number) => all([asked], more, now)[0]
  const limit = (limits: Partial<SpendingLimits>) => transaction(() => ledger.setLimits('scope:a', { ...NONE, ...limits }, 1))
  return { database, ledger, transaction, mint, all, send, limit }
}

const pays = (id: string, more: Partial<NewTransfer> = {}): NewTransfer => ({ id, debit: 'scope:a', credit: 'scope:b', amount: 5, ...more })
const holds = (id: string, more: Partial<NewTransfer> = {}): NewTransfer => pays(id, { pending: true, ...more })
const voids = (id: string, pending_id: string, more: Partial<NewTransfer> = {}): NewTransfer => ({ id, pending_id, void: true, ...more })
const posts = (id: string, pending_id: string, post: true | number = true): NewTransfer => ({ id, pending_id, post })

describe('a pending transfer', () => {
  test('ends once, and a second end is refused with the way of the first', () => {
    const { ledger, transaction, all, send } = shop()
    all([holds('p'), holds('v'), holds('t', { timeout_s: 1 }), posts('post p', 'p', 3), voids('void v', 'v')])
    transaction(() => ledger.expire(1002))
    const ends = (name: string) => [voids(`void ${name} again`, name), posts(`post ${name} again`, name)].map((end) => send(end))
    expect(ends('p')).toEqual(Array(2).fill('pending_transfer_already_posted'))
    expect(ends('v')).toEqual(Array(2).fill('pending_transfer_already_voided'))
    expect(ends('t')).toEqual(Array(2).fill('pending_transfer_timed_out'))
    expect(ledger.account('scope:a')).toMatchObject({ balance: 97, available: 97 })
  })

  test('ends once within a request, too, in a chain or outside of one', () => {
    const { all } = shop()
    all([holds('p'), holds('q')])
    expect(all([posts('one', 'p'), voids('two', 'p')])).toEqual(['created', 'pending_transfer_already_posted'])
    const chain = [voids('three', 'q', { linked: true }), pays('four')]
    expect(all([...chain, posts('five', 'q')])).toEqual(['created', 'created', 'pending_transfer_already_voided'])
    const unknown = [voids('six', 'none', { linked: true }), pays('seven')]
    expect(all(unknown)).toEqual(['pending_transfer_not_found', 'linked_transfer_failed'])
  })

  test('is posted up to its amount', () => {
    const { ledger, send, all } = shop()
    all([holds('p'), holds('q')])
    expect([send(posts('more', 'p', 6)), send(posts('all', 'p', 5)), send(posts('part', 'q', 4))]).toEqual([
      'exceeds_pending_amount',
      'created',
      'created',
    ])
    expect(ledger.account('scope:b')).toMatchObject({ balance: 109, credits_pending: 0 })
  })

  test('times out only if it says when', () => {
    const { ledger, transaction, all } = shop()
    all([holds('p'), holds('t', { timeout_s: 2 }), pays('s')])
    expect(ledger.transfers(['p', 't', 's']).map(({ expires_at }) => expires_at)).toEqual([null, '1970-01-01T00:00:02.002Z', null])
    expect(ledger.due).toBe(2002)
    expect(transaction(() => ledger.expire(10 * HOUR))).toHaveLength(1)
  })

  test('is not ended under an id that its payer has used, also if the same request opens it', () => {
    const { all, send } = shop()
    send(pays('v'))
    expect(all([holds('p'), voids('v', 'p')])).toEqual(['created', 'exists_with_different_debit'])
  })

  test('is not what a single transfer is, nor what nobody made', () => {
    const { send } = shop()
    send(pays('s'))
    expect(send(voids('v', 's'))).toBe('pending_transfer_not_pending')
    expect(send(posts('p', 's'))).toBe('pending_transfer_not_pending')
    expect(send(voids('w', 'none'))).toBe('pending_transfer_not_found')
  })

  test('that pays escrow, or that the market made, is ended by the market alone', () => {
    const { send } = shop()
    const market = { privileged: true }
    send(holds('deal:1', { credit: 'escrow' }), market)
    send(holds('invoke:1'), market)
    send(holds('offer', { credit: 'escrow' }), market)
    expect([voids('v1', 'offer'), voids('v2', 'deal:1'), voids('v3', 'invoke:1')].map((end) => send(end))).toEqual([
      'escrow_only_deals',
      'escrow_only_deals',
      'reserved_id',
    ])
    expect([voids('w1', 'offer'), voids('w2', 'deal:1'), voids('w3', 'invoke:1')].map((end) => send(end, market))).toEqual(
      Array(3).fill('created'),
    )
  })

  test('is ended by whoever may, also if the same request names it before', () => {
    const { send, all } = shop()
    send(holds('p'))
    const stranger = { caller: 'stranger', ends: [] }
    expect(all([holds('p'), voids('v', 'p')], stranger)).toEqual(['exists', 'pending_transfer_not_found'])
    expect(all([holds('own'), voids('w', 'own')], stranger)).toEqual(['created', 'created'])
    expect(all([holds('out'), voids('x', 'out', { linked: true }), pays('x2')], stranger)).toEqual(Array(3).fill('created'))
    expect(all([holds('in', { linked: true }), pays('y'), voids('y2', 'in')], stranger)).toEqual(Array(3).fill('created'))
    expect(send(voids('v', 'p'), { caller: 'owner', ends: [{ id: 'p', debit: 'scope:a' }] })).toBe('created')
  })
})

describe('a request that is repeated', () => {
  test.each([
    pays('x', { code: 'rent', memo: 'May' }),
    pays('x', { pending: false, linked: false }),
    holds('x'),
    holds('x', { timeout_s: 60 }),
    posts('x', 'p'),
    posts('x', 'p', 4),
    posts('x', 'p', 9),
    voids('x', 'p'),
    voids('x', 'p', { debit: 'scope:a' }),
  ])('is known, and changes nothing: %o', (asked) => {
    const { ledger, send } = shop()
    send(holds('p', { amount: 9 }))
    expect(send(asked)).toBe('created')
    const before = ledger.history({ after: null, limit: 10 })
    expect(send(asked)).toBe('exists')
    expect(ledger.history({ after: null, limit: 10 })).toEqual(before)
  })

  test.each([
    ['credit', pays('x'), pays('x', { credit: 'scope:c' })],
    ['amount', pays('x'), pays('x', { amount: 6 })],
    ['code', pays('x', { code: 'rent' }), pays('x', { code: 'fee' })],
    ['memo', pays('x', { memo: 'May' }), pays('x')],
    ['pending', pays('x'), holds('x')],
    ['timeout_s', holds('x', { timeout_s: 60 }), holds('x')],
    ['linked', pays('x'), pays('x', { linked: true })],
    ['post', posts('x', 'p', 9), posts('x', 'p')],
    ['post', posts('x', 'p'), posts('x', 'p', 9)],
    ['post', posts('x', 'p', 4), voids('x', 'p')],
    ['post', voids('x', 'p'), posts('x', 'p')],
  ])('with another %s is refused', (field, first, second) => {
    const { send } = shop()
    send(holds('p', { amount: 9 }))
    expect(send(first)).toBe('created')
    expect(send(second)).toBe(`exists_with_different_${field}`)
  })

  test('by an agent is refused with another payer, since its ids are its own', () => {
    const { send } = shop()
    expect(send(pays('agent:1'))).toBe('created')
    expect(send(pays('agent:1', { debit: 'scope:b', credit: 'scope:c' }))).toBe('exists_with_different_debit')
  })

  test('means the pending transfer that it ended, where another has the same id by now', () => {
    const { all, send } = shop()
    const of = (payer: string): NewTransfer => holds('invoice', { debit: payer, credit: 'scope:c' })
    send(of('scope:a'))
    expect(send(voids('v', 'invoice'))).toBe('created')
    send(of('scope:b'))
    expect(send(voids('v', 'invoice'))).toBe('exists')
    expect(all([voids('w', 'invoice'), voids('w', 'invoice', { debit: 'scope:b' })])).toEqual(['pending_transfer_ambiguous', 'created'])
  })

  test('whose id is how another one is kept is another request', () => {
    const { send } = shop()
    expect(send(pays('x'))).toBe('created')
    expect(send(pays('x\nscope:a'))).toBe('created')
  })

  test('by a caller whose end failed is answered by what has ended since, if that was the same', () => {
    const { send } = shop()
    const [stranger, other] = [{ caller: 'stranger' }, { caller: 'other' }]
    expect(send(voids('v', 'p'), stranger)).toBe('pending_transfer_not_found')
    send(holds('p'))
    expect(send(voids('v', 'p'), other)).toBe('created')
    expect(send(voids('v', 'p'), stranger)).toBe('exists')
    send(holds('q'))
    expect(send(posts('w', 'none'), stranger)).toBe('pending_transfer_not_found')
    expect(send(posts('w', 'q', 6), other)).toBe('exceeds_pending_amount')
    expect(send(posts('w', 'q', 6), stranger)).toBe('exceeds_pending_amount')
  })
})

describe('what failed before ids belonged to accounts', () => {
  function withOld(asked: NewTransfer) {
    const all = shop()
    all.database.prepare(`INSERT INTO failed VALUES (?, ?, 'pending_transfer_not_found', 1)`).run(asked.id, JSON.stringify(asked))
    return all
  }

  test('is known to its payer alone', () => {
    const { send } = withOld(pays('old'))
    expect(send(pays('old', { debit: 'scope:b', credit: 'scope:c' }))).toBe('created')
    expect(send(pays('old'))).toBe('pending_transfer_not_found')
  })

  test('is known to whoever ends the same pending transfer', () => {
    const { send } = withOld(voids('old', 'p'))
    for (const id of ['p', 'q']) send(holds(id))
    expect(send(voids('old', 'p', { debit: 'scope:a' }))).toBe('pending_transfer_not_found')
    expect(send(voids('old', 'q'))).toBe('created')
  })

  test('is not known by an id that is kept for another account', () => {
    const { send } = withOld({ ...pays('other'), id: 'old' })
    expect(send(pays('other'))).toBe('created')
  })
})

describe('a chain', () => {
  test('of one transfer alone that says it is linked is open, and makes nothing', () => {
    const { ledger, all, send } = shop()
    expect(send(pays('x', { linked: true }))).toBe('linked_chain_open')
    expect(all([pays('y', { linked: true }), pays('z', { linked: true })])).toEqual(['linked_transfer_failed', 'linked_chain_open'])
    expect(ledger.account('scope:b')).toMatchObject({ balance: 100 })
  })

  test('that is repeated as a whole is known, and one with a reserved id uses up the others', () => {
    const { all, send } = shop()
    const chain = [pays('x', { linked: true }), pays('y')]
    expect([all(chain), all(chain)]).toEqual([Array(2).fill('created'), Array(2).fill('exists')])
    expect(all([pays('z', { linked: true }), pays('deal:1')])).toEqual(['linked_transfer_failed', 'reserved_id'])
    expect(send(pays('z'))).toBe('exists_with_different_linked')
  })
})

describe('an account', () => {
  test('that D1 does not know yet uses up no id of a mint, and that of any other transfer', () => {
    const { mint, send } = shop()
    expect(mint('m', 'scope:new', 5, [])).toBe('credit_account_not_found')
    expect(mint('m', 'scope:new', 5, ['scope:new'])).toBe('created')
    const opens = [...NAMES, 'scope:late']
    expect(send(pays('x', { credit: 'scope:late' }))).toBe('credit_account_not_found')
    expect(send(pays('x', { credit: 'scope:late' }), { opens })).toBe('credit_account_not_found')
    expect(send(pays('y', { credit: 'scope:late' }), { opens })).toBe('created')
  })

  test('a mint that fails for another reason uses up its id', () => {
    const { ledger, mint } = shop()
    ledger.closeAccount('scope:b')
    expect(mint('m', 'scope:b', 5)).toBe('credit_account_closed')
    expect(mint('m', 'scope:b', 6)).toBe('exists_with_different_amount')
    expect(mint('deal:1', 'scope:a', 5)).toBe('reserved_id')
  })

  test('that is closed is paid nothing, and pays only where it is emptied', () => {
    const { ledger, send } = shop()
    ledger.closeAccount('scope:a')
    expect(send(pays('x', { debit: 'scope:b', credit: 'scope:a' }))).toBe('credit_account_closed')
    expect(send(pays('x'))).toBe('debit_account_closed')
    expect(send(pays('y'), { empties: true })).toBe('created')
    expect(send(pays('z', { debit: 'scope:b', credit: 'scope:a' }), { empties: true })).toBe('credit_account_closed')
  })

  test('of another owner is as unknown as one that does not exist', () => {
    const { ledger, transaction, send, mint } = shop()
    transaction(() => ledger.accountOfKey({ id: '1'.repeat(16), name: 'kim', opens: true }))
    mint('m', 'key:kim', 50)
    const of = (owner: string) => ({ owners: { 'key:kim': owner } })
    const [own, other] = [of('1'.repeat(16)), of('2'.repeat(16))]
    expect(send(pays('w', { debit: 'key:kim' }), other)).toBe('debit_account_not_found')
    expect(send(pays('x', { debit: 'key:kim' }), own)).toBe('created')
    expect(send(pays('y', { credit: 'key:kim' }), other)).toBe('credit_account_not_found')
    expect(send(pays('z', { credit: 'key:kim' }))).toBe('created')
    expect(send(pays('s', { debit: 'key:kim' }), { ...other, empties: true })).toBe('debit_account_not_found')
    ledger.closeAccount('key:kim')
    expect(send(pays('t', { debit: 'key:kim' }), other)).toBe('debit_account_not_found')
    expect(send(pays('v', { debit: 'key:kim' }), { ...other, empties: true })).toBe('created')
    expect(send(pays('u', { debit: 'scope:b', credit: 'scope:c' }), { owners: { 'scope:b': '2'.repeat(16) } })).toBe('created')
  })

  test('that is opened has its owner at once, and one without an owner is anybody’s', () => {
    const { ledger, send } = shop()
    const owner = '1'.repeat(16)
    const opens = [...NAMES, 'key:kim', 'key:lee']
    send(pays('x', { credit: 'key:kim' }), { opens, owners: { 'key:kim': owner } })
    send(pays('y', { credit: 'key:lee' }), { opens })
    expect([ledger.ownerOf('key:kim'), ledger.ownerOf('key:lee'), ledger.ownerOf('scope:b')]).toEqual([owner, null, null])
  })

  test('pays and receives at most the largest sum, with what is pending', () => {
    const { ledger, mint, send } = shop()
    mint('most', 'scope:a', MOST_SCRIP - 200)
    expect(mint('too much', 'scope:a', 2)).toBe('exceeds_largest_balance')
    expect(mint('one more', 'scope:c', 1)).toBe('exceeds_largest_balance')
    expect(ledger.account('scope:a')).toMatchObject({ balance: MOST_SCRIP - 100 })
    const half = (MOST_SCRIP - 101) / 2
    const back = { debit: 'scope:c', credit: 'scope:a' }
    expect(send(pays('half', { credit: 'scope:c', amount: half }))).toBe('created')
    expect(send(pays('back', { ...back, amount: 101 }))).toBe('exceeds_largest_balance')
    expect(send(holds('held', { ...back, amount: 60 }))).toBe('created')
    expect(send(pays('over', { ...back, amount: 41 }))).toBe('exceeds_largest_balance')
    expect(send(pays('rest', { ...back, amount: 40 }))).toBe('created')
  })
})

describe('a spending limit', () => {
  test('holds for each transfer, and up to the limit itself', () => {
    const { limit, send } = shop()
    limit({ per_transaction: 5 })
    expect([send(pays('x', { amount: 6 })), send(pays('y'))]).toEqual(['exceeds_limit_per_transaction', 'created'])
  })

  test('holds for an hour and for a day', () => {
    const { limit, send } = shop()
    limit({ per_hour: 10, per_day: 12 })
    expect([send(pays('a')), send(pays('b')), send(pays('c', { amount: 1 }))]).toEqual(['created', 'created', 'exceeds_limit_per_hour'])
    const later = (id: string, amount: number, hours: number) => send(pays(id, { amount }), {}, 2 + hours * HOUR)
    expect([later('d', 3, 1), later('e', 2, 1), later('f', 1, 23), later('g', 10, 24)]).toEqual([
      'exceeds_limit_per_day',
      'created',
      'exceeds_limit_per_day',
      'created',
    ])
  })

  test('holds within a request, in which what returns may be spent again', () => {
    const { limit, all } = shop()
    limit({ per_hour: 10, per_day: 10 })
    expect(all([pays('x', { amount: 6 }), pays('y', { amount: 5 })])).toEqual(['created', 'exceeds_limit_per_hour'])
    expect(all([holds('p', { amount: 4 }), voids('v', 'p'), pays('z', { amount: 4 })])).toEqual(Array(3).fill('created'))
  })

  test.each([
    ['hour', HOUR],
    ['day', 24 * HOUR],
  ])('is not spent again by what returns from a pending transfer that is an %s old', (name, age) => {
    const { limit, all, send } = shop()
    limit({ [`per_${name}`]: 10 })
    send(holds('p', { amount: 8 }))
    const batch = [pays('x'), voids('v', 'p'), pays('y', { amount: 6 })]
    expect(all(batch, {}, 2 + age)).toEqual(['created', 'created', `exceeds_limit_per_${name}`])
  })

  test('names who may be paid by any of its patterns; a deal through escrow is for the market to check', () => {
    const { limit, send } = shop()
    limit({ counterparties: ['shop/*', 'scope:b'] })
    expect(send(pays('x', { credit: 'scope:c' }))).toBe('counterparty_not_allowed')
    expect(send(pays('y'))).toBe('created')
    expect(send(pays('deal:z', { credit: 'escrow' }), { privileged: true })).toBe('created')
  })
})
