import { describe, expect, test } from 'vitest'
import { layTables } from '../../../src/kernel/lay-tables.ts'
import { DEAL_TABLES } from '../../../src/features/market/deals/tables.ts'
import { goodsOf, TestMarket } from '../../support/market-in-memory.ts'
import { ObjectSql } from '../../support/object-sql.ts'

const DAY = 86_400_000

/** Alice sells; bob and carol have 100 each. */
function openMarket(): TestMarket {
  const market = new TestMarket()
  for (const name of ['bob', 'carol']) market.mint(`scope:${name}`, 100)
  return market
}

const worth = (market: TestMarket, ...names: string[]): number[] => names.map((name) => market.balance(`scope:${name}`).available)

describe('an offer', () => {
  test('reserves its price until the seller answers', () => {
    const market = openMarket()
    market.list()
    expect(market.offer()).toMatchObject({ ok: true, created: true, deal: { status: 'offered', price: 30, held: 0 } })
    expect(market.balance('scope:bob')).toEqual({ balance: 100, available: 70 })
    expect(market.decide('reject', 'deal', 'scope:alice')).toMatchObject({ ok: true, deal: { status: 'rejected', delivery: null } })
    expect(market.balance('scope:bob')).toEqual({ balance: 100, available: 100 })
  })

  test('made again with the same content changes nothing, and with other content is refused by the field that differs', () => {
    const market = openMarket()
    market.list()
    market.offer()
    expect(market.offer()).toMatchObject({ ok: true, created: false, deal: { status: 'offered' } })
    expect(market.offer({ price: 29 })).toMatchObject({
      ok: false,
      reason: 'other_content',
      detail: expect.stringContaining('differs in price'),
    })
    expect(worth(market, 'bob')).toEqual([70])
  })

  test('of another buyer under a used id learns neither the listing nor the price of the deal', () => {
    const market = openMarket()
    market.list()
    market.list({ listing_id: 'another' })
    market.offer()
    const details = ['listing', 'another'].map((listing) => market.offer({ buyer: 'scope:carol', price: 29 }, listing))
    const refused = { ok: false, reason: 'other_content', detail: 'The deal deal exists and differs in buyer: use another id.' }
    expect(details).toMatchObject([refused, refused])
  })

  test('of more than the buyer has is refused, and stays refused under its id', () => {
    const market = openMarket()
    market.list()
    expect(market.offer({ price: 101 })).toMatchObject({ ok: false, reason: 'insufficient_funds' })
    market.mint('scope:bob', 1)
    expect(market.offer({ price: 101 })).toMatchObject({ ok: false, reason: 'insufficient_funds' })
    expect(market.offer({ id: 'another', price: 101 })).toMatchObject({ ok: true })
  })

  test('that is answered in the millisecond of its timeout has expired', () => {
    const market = openMarket()
    market.list()
    market.offer({ timeout_s: 10 })
    market.now += 10_000
    expect(market.accept()).toMatchObject({ ok: false, reason: 'expired' })
    expect(market.deal()).toMatchObject({ status: 'expired', delivery: null })
    expect(worth(market, 'alice', 'bob')).toEqual([0, 100])
  })

  test('is accepted one millisecond before its timeout', () => {
    const market = openMarket()
    market.list({ kind: 'copy' })
    market.offer({ timeout_s: 10 })
    market.now += 9999
    expect(market.accept()).toMatchObject({ ok: true })
    expect(worth(market, 'alice', 'bob')).toEqual([30, 70])
  })

  test.each([
    ['of the seller', { buyer: 'scope:alice' }, 'own'],
    ['of a key that names no scopes for a licence', { buyer: 'key:zoe' }, 'not_licensable'],
  ] as const)('%s is refused', (_case, asked, reason) => {
    const market = openMarket()
    market.list()
    expect(market.offer(asked)).toMatchObject({ ok: false, reason })
  })

  test('on a listing that is closed, expired or missing is refused', () => {
    const market = openMarket()
    market.list({ expires_at: new Date(market.now + 1000).toISOString() })
    market.now += 1000
    expect(market.offer()).toMatchObject({ ok: false, reason: 'expired' })
    market.list({ listing_id: 'second' })
    market.act(({ deals }, now) => deals.unlist('second', { reason: 'changed my mind' }, now))
    expect(market.offer({}, 'second')).toMatchObject({ ok: false, reason: 'not_open' })
    expect(market.offer({}, 'third')).toMatchObject({ ok: false, reason: 'not_found' })
  })

  test('returns its money if its listing is closed', () => {
    const market = openMarket()
    market.list()
    market.offer()
    market.act(({ deals }, now) => deals.unlist('listing', { reason: 'closed' }, now))
    expect(market.deal()).toMatchObject({ status: 'rejected' })
    expect(worth(market, 'bob')).toEqual([100])
  })

  test('is refused beyond the limit of open offers on a listing', () => {
    const market = openMarket()
    market.list({ price: 1 })
    for (let n = 0; n < 100; n++) expect(market.offer({ id: `deal-${n}` })).toMatchObject({ ok: true })
    expect(market.offer({ id: 'one-more', buyer: 'scope:carol' })).toMatchObject({ ok: false, reason: 'limit' })
  })
})

describe('an acceptance', () => {
  test('pays and delivers a copy at once, once', () => {
    const market = openMarket()
    market.list({ kind: 'copy' })
    market.offer()
    expect(market.accept()).toMatchObject({
      ok: true,
      deal: { status: 'accepted', paid: 30, held: 0, delivery: { kind: 'copy', artifact: 'reflex:greet-c1@1', in_use: true } },
    })
    expect(market.accept()).toMatchObject({ ok: false, reason: 'decided' })
    expect(worth(market, 'alice', 'bob')).toEqual([30, 70])
    expect(market.act(({ deals }) => deals.owned('scope:bob'))).toEqual(['reflex:greet-c1'])
  })

  test.each([
    ['accept', 'scope:bob'],
    ['reject', 'scope:carol'],
    ['cancel', 'scope:alice'],
  ] as const)('%s is refused to %s', (decision, account) => {
    const market = openMarket()
    market.list()
    market.offer()
    expect(market.decide(decision, 'deal', account)).toMatchObject({ ok: false, reason: 'not_allowed' })
    expect(market.deal().status).toBe('offered')
  })

  test('is refused to another key with the name of the seller', () => {
    const market = openMarket()
    const by = { name: 'sam', opens: ['key:sam'], owners: { 'key:sam': 'first' } }
    const asked = { listing_id: 'listing', artifact: 'reflex:greet@1', kind: 'copy' as const, price: 30, seller: 'key:sam' }
    market.act(({ deals }, now) => deals.list(asked, goodsOf(asked.artifact), by, now))
    market.offer()
    const accept = (key_id: string) => market.act(({ deals }, now) => deals.decide('deal', 'accept', { account: 'key:sam', key_id }, now))
    expect(accept('second')).toMatchObject({ ok: false, reason: 'not_allowed' })
    expect(accept('first')).toMatchObject({ ok: true })
    expect(market.act(({ ledger }) => ledger.ownerOf('key:sam'))).toBe('first')
  })

  test.each(['retired', 'deprecated', 'missing', 'shadow'])(
    'of a version that has become %s sells nothing and returns the money',
    (state) => {
      const market = openMarket()
      market.list()
      market.offer()
      expect(market.accept('deal', 'scope:alice', state)).toMatchObject({ ok: false, reason: 'goods_changed' })
      expect(market.deal()).toMatchObject({ status: 'rejected', delivery: null })
      expect(worth(market, 'alice', 'bob')).toEqual([0, 100])
    },
  )

  test('of ownership ends the other offers and listings of the artifact', () => {
    const market = openMarket()
    market.list({ kind: 'ownership' })
    market.list({ listing_id: 'licences', kind: 'licence' })
    market.offer()
    market.offer({ id: 'late', buyer: 'scope:carol' })
    market.offer({ id: 'licence', buyer: 'scope:carol' }, 'licences')
    market.accept()
    expect(market.deal('late')).toMatchObject({ status: 'rejected' })
    expect(market.deal('licence')).toMatchObject({ status: 'rejected' })
    expect(worth(market, 'alice', 'bob', 'carol')).toEqual([30, 70, 100])
    expect(market.act(({ deals }) => deals.listing('listing'))?.state).toBe('sold')
    expect(market.list({ listing_id: 'again' })).toMatchObject({ ok: false, reason: 'not_resalable' })
    const held = (name: string) => market.act(({ deals }) => [deals.owned(`scope:${name}`), deals.sold(`scope:${name}`)])
    expect([held('alice'), held('bob')]).toEqual([
      [[], ['reflex:greet']],
      [['reflex:greet'], []],
    ])
    expect(market.list({ listing_id: 'bobs', kind: 'ownership', price: 1, seller: 'scope:bob' })).toMatchObject({ ok: true })
    market.offer({ id: 'back', buyer: 'scope:alice' }, 'bobs')
    market.accept('back', 'scope:bob')
    expect([held('alice'), held('bob')]).toEqual([
      [['reflex:greet'], []],
      [[], ['reflex:greet']],
    ])
  })
})

describe('a listing', () => {
  test('of a copy needs the right to resell it', () => {
    const market = openMarket()
    market.list({ kind: 'copy' })
    market.offer()
    market.accept()
    const { artifact = '' } = market.deal().delivery ?? {}
    expect(market.list({ listing_id: 'again', artifact, seller: 'scope:bob' })).toMatchObject({ ok: false, reason: 'not_resalable' })
  })

  test('of the same content under another id is refused', () => {
    const market = openMarket()
    const copied = { artifact: 'reflex:mine@1', seller: 'scope:bob' }
    expect(market.list(copied, { original: 'reflex:greet@1' })).toMatchObject({ ok: false, reason: 'sold_as_new' })
    market.list({}, { hash: 'same' })
    expect(market.list({ listing_id: 'twin', artifact: 'reflex:twin@1' }, { hash: 'same' })).toMatchObject({
      ok: false,
      reason: 'sold_as_new',
    })
  })

  test('is refused while the same one is open, and if it would have expired', () => {
    const market = openMarket()
    market.list()
    expect(market.list({ listing_id: 'second' })).toMatchObject({ ok: false, reason: 'listed_already' })
    const expires_at = new Date(market.now).toISOString()
    expect(market.list({ listing_id: 'third', kind: 'copy', expires_at })).toMatchObject({ ok: false, reason: 'expired' })
  })
})

describe('royalties', () => {
  /** Each buys a copy of the one before, and resells it. */
  function resale(market: TestMarket, sellers: readonly string[], royalty_percent: number): void {
    let artifact = 'reflex:greet@1'
    sellers.slice(0, -1).forEach((name, index) => {
      const [listing_id, id] = [`listing-${index}`, `deal-${index}`]
      market.list({ listing_id, artifact, kind: 'copy', price: 10, seller: `scope:${name}`, terms: { resale: true, royalty_percent } })
      market.offer({ id, buyer: `scope:${sellers[index + 1]}` }, listing_id)
      market.accept(id, `scope:${name}`)
      artifact = market.deal(id).delivery?.artifact ?? ''
    })
  }

  test('flow along the line: each takes its share of what the next one receives', () => {
    const market = openMarket()
    market.mint('scope:dave', 10)
    resale(market, ['alice', 'bob', 'carol', 'dave'], 50)
    // 10 to alice; 5 of 10 from bob to alice; 5 of 10 to bob, of which 2 to alice.
    expect(worth(market, 'alice', 'bob', 'carol', 'dave')).toEqual([17, 98, 95, 0])
  })

  test('are due for a free copy of a bought one, too: the free link takes nothing', () => {
    const market = openMarket()
    market.mint('scope:dave', 100)
    resale(market, ['alice', 'bob'], 20)
    const origins = [market.deal('deal-0').delivery?.artifact.replace('@1', '') ?? '']
    const free = { listing_id: 'free', artifact: 'reflex:free@1', kind: 'copy' as const, price: 50, seller: 'scope:carol' }
    expect(market.list(free, { original: 'reflex:greet@1', origins })).toMatchObject({ ok: true })
    market.offer({ id: 'last', buyer: 'scope:dave' }, 'free')
    market.accept('last', 'scope:carol')
    expect(worth(market, 'alice', 'bob', 'carol', 'dave')).toEqual([10 + 10, 90, 140, 50])
  })

  test('of a copy without the right to resell it are no way to sell a free copy of it', () => {
    const market = openMarket()
    market.list({ kind: 'copy' })
    market.offer()
    market.accept()
    const origins = [market.deal().delivery?.artifact.replace('@1', '') ?? '']
    const free = { listing_id: 'free', artifact: 'reflex:free@1', seller: 'scope:bob' }
    expect(market.list(free, { origins })).toMatchObject({ ok: false, reason: 'not_resalable' })
  })

  test('of a line that returns to its beginning add up', () => {
    const market = openMarket()
    market.mint('scope:alice', 100)
    resale(market, ['alice', 'bob', 'alice', 'carol'], 50)
    const [alice = 0, bob = 0, carol = 0] = worth(market, 'alice', 'bob', 'carol')
    expect([alice + bob + carol, carol]).toEqual([300, 90])
    expect(market.act(({ ledger }) => ledger.audit())).toMatchObject({ ok: true, open_pendings: 0 })
  })
})

describe('a licence', () => {
  const buy = (market: TestMarket, terms: object, asked: object = {}): void => {
    market.list({ terms })
    market.offer(asked)
    market.accept()
  }

  test('is earned by time, and the rest returns if it is revoked', () => {
    const market = openMarket()
    buy(market, { days: 10 })
    expect(worth(market, 'alice', 'bob')).toEqual([0, 70])
    market.now += 3 * DAY
    expect(market.deal()).toMatchObject({ paid: 9, held: 21 })
    market.now += DAY / 2
    const revocation = { artifact: 'reflex:greet@1', hash: 'hash of reflex:greet@1', reason: 'its certificate has lapsed' }
    market.act(({ deals }, now) => deals.revoke(revocation, now))
    expect(market.deal()).toMatchObject({ status: 'refunded', paid: 10, held: 0, delivery: { in_use: false } })
    expect(worth(market, 'alice', 'bob')).toEqual([10, 90])
    expect(market.act(({ deals }) => deals.listing('listing'))).toMatchObject({
      state: 'closed',
      state_reason: 'its certificate has lapsed',
    })
  })

  test('is settled at its end', () => {
    const market = openMarket()
    buy(market, { days: 1 })
    expect(market.act(({ deals }) => deals.licences('scope:bob'.slice(6)))).toMatchObject([
      { deal_id: 'deal', kind: 'reflex', id: 'greet' },
    ])
    market.now += DAY
    expect(market.deal()).toMatchObject({ status: 'settled', paid: 30, held: 0, delivery: { in_use: false } })
    expect(market.act(({ deals }) => deals.licences('bob'))).toEqual([])
  })

  test('is paid by action, counts reports once, and ends when all are used', () => {
    const market = openMarket()
    buy(market, { fires: 10 })
    market.use('bob', 4)
    market.use('bob', 4)
    market.use('bob', 3)
    market.use('elsewhere', 9)
    expect(market.deal()).toMatchObject({ paid: 12, held: 18, delivery: { used: { bob: 4 } } })
    market.use('bob', 10)
    expect(market.deal()).toMatchObject({ status: 'settled', paid: 30, held: 0 })
  })

  test('is paid by certified decision out of its budget, and its buyer may end it', () => {
    const market = openMarket()
    buy(market, { per_decision: 2 })
    market.use('bob', 40, 5)
    expect(market.deal()).toMatchObject({ paid: 10, held: 20 })
    expect(market.decide('refund', 'deal', 'scope:bob')).toMatchObject({ ok: true, deal: { status: 'refunded' } })
    expect(worth(market, 'alice', 'bob')).toEqual([10, 90])
    market.use('bob', 80, 15)
    expect(worth(market, 'alice', 'bob')).toEqual([10, 90])
  })

  test('ends with its budget', () => {
    const market = openMarket()
    buy(market, { per_decision: 7 })
    market.use('bob', 9, 9)
    expect(market.deal()).toMatchObject({ status: 'settled', paid: 30, held: 0 })
  })

  test('for a time is refunded by its seller alone', () => {
    const market = openMarket()
    buy(market, { days: 10 })
    market.now += DAY
    expect(market.decide('refund', 'deal', 'scope:bob')).toMatchObject({ ok: false, reason: 'not_allowed' })
    expect(market.decide('refund', 'deal', 'scope:alice')).toMatchObject({ ok: true, deal: { paid: 3, held: 0 } })
    expect(market.decide('refund', 'deal', 'scope:alice')).toMatchObject({ ok: false, reason: 'decided' })
  })

  test('for a time may be ended by its buyer once its certificate has lapsed in a scope', () => {
    const market = openMarket()
    buy(market, { days: 10 })
    market.now += DAY
    const use = { deal_id: 'deal', fires: 0, certified: 0, lapses: 1 }
    market.act(({ deals }, now) => deals.reportUse([{ ...use, scope: 'elsewhere' }], now))
    expect(market.decide('refund', 'deal', 'scope:bob')).toMatchObject({ ok: false, reason: 'not_allowed' })
    market.act(({ deals }, now) => deals.reportUse([{ ...use, scope: 'bob' }], now))
    expect(market.deal()).toMatchObject({ status: 'accepted', delivery: { lapsed: ['bob'], in_use: true } })
    expect(market.decide('refund', 'deal', 'scope:bob')).toMatchObject({ ok: true, deal: { status: 'refunded', paid: 3, held: 0 } })
    expect(worth(market, 'alice', 'bob')).toEqual([3, 97])
  })

  test('covers the scopes that its offer names, also by pattern', () => {
    const market = openMarket()
    buy(market, { most_scopes: 'any' }, { scopes: ['shop/*', 'bob'] })
    expect(['shop/berlin', 'bob', 'other'].map((scope) => market.act(({ deals }) => deals.licences(scope)).length)).toEqual([1, 1, 0])
  })

  test.each([[['*']], [['bob', 'other']]])('is for one scope by its whole name, unless its seller allows more: %j', (scopes) => {
    const market = openMarket()
    market.list({ kind: 'licence' })
    expect(market.offer({ scopes })).toMatchObject({ ok: false, reason: 'not_licensable' })
  })

  test('pays its buyer back if another key has the account of its seller', () => {
    const market = openMarket()
    const by = { name: 'sam', opens: ['key:sam'], owners: { 'key:sam': 'first' } }
    const asked = { listing_id: 'listing', artifact: 'reflex:greet@1', kind: 'licence' as const, price: 30, seller: 'key:sam' }
    market.act(({ deals }, now) => deals.list({ ...asked, terms: { days: 10 } }, goodsOf(asked.artifact), by, now))
    market.offer()
    market.act(({ deals }, now) => deals.decide('deal', 'accept', { account: 'key:sam', key_id: 'first' }, now))
    // The first key is deleted before its account opens.
    market.act(({ ledger }) => ledger.closeAccount('key:sam', 'first'))
    market.act(({ ledger }, now) => {
      const paid = { id: 'pay-sam', debit: 'scope:bob', credit: 'key:sam', amount: 1 }
      ledger.transfer([paid], { opens: ['key:sam'], owners: { 'key:sam': 'second' }, privileged: false }, now)
    })
    expect(market.offer({ id: 'late' })).toMatchObject({ ok: false, reason: 'not_open' })
    market.now += 10 * DAY
    expect(market.deal()).toMatchObject({ status: 'settled', held: 0 })
    expect(market.balance('key:sam').balance).toBe(1)
    expect(market.balance('scope:bob').balance).toBe(99)
  })

  test('pays its buyer back if the account of its seller is closed', () => {
    const market = openMarket()
    buy(market, { days: 10 })
    market.act(({ ledger }) => ledger.closeAccount('scope:alice'))
    market.now += 10 * DAY
    expect(market.deal()).toMatchObject({ status: 'settled', held: 0 })
    expect(market.act(({ ledger }) => ledger.account('escrow'))).toMatchObject({ balance: 0 })
  })
})

describe('a trial', () => {
  test('opens the account of its seller for the key that listed, and for no other of its name', () => {
    const market = openMarket()
    const by = { name: 'sam', opens: ['key:sam'], owners: { 'key:sam': 'first' } }
    const asked = { listing_id: 'listing', artifact: 'reflex:greet@1', kind: 'copy' as const, price: 30, seller: 'key:sam' }
    market.act(({ deals }, now) => deals.list({ ...asked, terms: { trial_fee: 2 } }, goodsOf(asked.artifact), by, now))
    expect(market.act(({ deals }, now) => deals.payTrial('listing', { buyer: 'scope:bob', id: 'one' }, now))).toMatchObject({ ok: true })
    expect(market.act(({ ledger }) => ledger.ownerOf('key:sam'))).toBe('first')
  })

  test('costs its fee once, and is limited for each buyer', () => {
    const market = openMarket()
    market.list({ terms: { trial_fee: 3 } })
    const attempt = (id: string) => market.act(({ deals }, now) => deals.payTrial('listing', { buyer: 'scope:bob', id }, now))
    expect([attempt('1'), attempt('1')]).toMatchObject([{ ok: true }, { ok: true }])
    expect(worth(market, 'alice', 'bob')).toEqual([3, 97])
    for (const id of ['2', '3', '4', '5']) expect(attempt(id)).toMatchObject({ ok: true })
    expect(attempt('6')).toMatchObject({ ok: false, reason: 'limit' })
    market.now += 3_600_000
    expect(attempt('6')).toMatchObject({ ok: true })
  })

  test('is not refused for as long as a clock was ahead', () => {
    const market = openMarket()
    market.list({ terms: { trial_fee: 3 } })
    const attempt = (id: string) => market.act(({ deals }, now) => deals.payTrial('listing', { buyer: 'scope:bob', id }, now))
    market.now += 400 * DAY
    for (const id of ['1', '2', '3', '4', '5']) expect(attempt(id)).toMatchObject({ ok: true })
    expect(attempt('6')).toMatchObject({ ok: false, reason: 'limit' })
    market.now -= 400 * DAY
    expect(attempt('6')).toMatchObject({ ok: true })
  })

  test('is not repeated for nothing once it is old, whether its row is kept or not', () => {
    const market = openMarket()
    market.list({ terms: { trial_fee: 3 } })
    const attempt = (id: string) => market.act(({ deals }, now) => deals.payTrial('listing', { buyer: 'scope:bob', id }, now))
    expect(attempt('1')).toMatchObject({ ok: true })
    market.now += 7 * DAY + 1
    expect(attempt('1')).toMatchObject({ ok: false, reason: 'expired' })
    expect(attempt('2')).toMatchObject({ ok: true })
    expect(attempt('1')).toMatchObject({ ok: false, reason: 'expired' })
    expect(worth(market, 'alice', 'bob')).toEqual([6, 94])
  })
})

test('a deal is sent with the ids of the keys of its sides', () => {
  const market = new TestMarket()
  market.mint('scope:bob', 100)
  const asked = { listing_id: 'listing', artifact: 'reflex:greet@1', kind: 'ownership' as const, price: 30, seller: 'key:alice' }
  const by = { name: 'alice', opens: ['key:alice'], owners: { 'key:alice': 'id-of-alice' } }
  market.act(({ deals }, now) => deals.list(asked, goodsOf(asked.artifact), by, now))
  expect(market.offer()).toMatchObject({ ok: true })
  expect(market.accept('deal', 'key:alice')).toMatchObject({ ok: true })
  expect(market.sent.get('deals deal')).toMatchObject({ owners: { seller: 'id-of-alice', buyer: null } })
})

test('the tables of an object that ran before lapses were counted get their column', () => {
  const { storage } = new ObjectSql()
  const earlier = DEAL_TABLES.filter((step) => !step.includes('lapses'))
  for (const steps of [earlier, DEAL_TABLES]) layTables(storage, 'deals', steps)
  expect(storage.exec('SELECT lapses FROM licence_uses').toArray()).toEqual([])
})

test('a due deal that throws is retried in an hour, and does not stop the others', () => {
  const market = openMarket()
  for (const [id, buyer] of [
    ['broken', 'scope:bob'],
    ['sound', 'scope:carol'],
  ] as const) {
    market.list({ listing_id: id, artifact: `reflex:${id}@1`, terms: { days: 1 } })
    market.offer({ id, buyer }, id)
    market.accept(id)
  }
  const setTerms = (terms: unknown) =>
    market.sql.exec(`UPDATE deals SET record = json_set(record, '$.terms', json(?)) WHERE deal_id = 'broken'`, JSON.stringify(terms))
  setTerms(null)
  market.now += DAY
  expect(market.deal('sound')).toMatchObject({ status: 'settled' })
  expect(worth(market, 'alice')).toEqual([30])
  setTerms({ days: 1 })
  market.now += 3_599_999
  expect(market.deal('broken')).toMatchObject({ status: 'accepted' })
  market.now += 1
  expect(market.deal('broken')).toMatchObject({ status: 'settled' })
  expect(worth(market, 'alice')).toEqual([60])
})

test('an offer for a licence where the goods run without one is refused, and for other scopes it is not', () => {
  const market = openMarket()
  market.list({ terms: { most_scopes: 2 } }, { owner_scopes: ['shop/*', 'bob'] })
  for (const scopes of [undefined, ['shop/berlin'], ['shop/berlin', 'bob']]) {
    const refused = { ok: false, reason: 'not_licensable', detail: expect.stringContaining('without a licence') }
    expect(market.offer(scopes && { scopes })).toMatchObject(refused)
  }
  expect(worth(market, 'bob')).toEqual([100])
  expect(market.offer({ scopes: ['shop/berlin', 'cafe/paris'] })).toMatchObject({ ok: true })
})

test('a revoked version closes its own listings, and none of another artifact with equal code', () => {
  const market = openMarket()
  const hash = 'the same code'
  market.list({}, { hash })
  market.list({ listing_id: 'other', artifact: 'reflex:other@1', seller: 'scope:carol' }, { hash })
  market.act(({ deals }, now) => deals.revoke({ artifact: 'reflex:greet@1', hash, reason: 'it was retired' }, now))
  const states = ['listing', 'other'].map((id) => market.act(({ deals }) => deals.listing(id))?.state)
  expect(states).toEqual(['closed', 'open'])
})

test('a licence for a pattern is earned by the actions of all scopes that used it', () => {
  const market = openMarket()
  market.list({ terms: { fires: 10, most_scopes: 'any' } })
  market.offer({ scopes: ['shop/*'] })
  market.accept()
  market.use('shop/1', 4)
  expect(market.deal()).toMatchObject({ paid: 12 })
  market.use('shop/2', 8)
  // 12 of the 20 actions that two scopes may take.
  expect(market.deal()).toMatchObject({ paid: 18 })
})

test('a trial of its own goods costs a seller nothing', () => {
  const market = openMarket()
  market.list({ seller: 'scope:bob', terms: { trial_fee: 5 } })
  const paid = market.act(({ deals }, now) => deals.payTrial('listing', { buyer: 'scope:bob', id: 'one' }, now))
  expect(paid).toEqual({ ok: true, transfer: null })
  expect(worth(market, 'bob')).toEqual([100])
})

test('the transfers of a deal are in use while it is an offer or escrow has money for it', () => {
  const market = new TestMarket()
  market.mint('scope:bob', 100)
  market.list({ terms: { days: 10 } })
  const inUse = () => market.act(({ deals }) => deals.inUse(['deal:deal:hold', 'deal:deal:pay-5-0', 'deal:other:hold', 'mint', 'deal:']))
  expect(inUse()).toEqual([])
  market.offer()
  expect(inUse()).toEqual(['deal:deal:hold', 'deal:deal:pay-5-0'])
  market.accept()
  expect(inUse()).toEqual(['deal:deal:hold', 'deal:deal:pay-5-0'])
  market.now += 11 * 86_400_000
  expect(inUse()).toEqual([])
  expect(market.deal()).toMatchObject({ status: 'settled', held: 0 })
})
