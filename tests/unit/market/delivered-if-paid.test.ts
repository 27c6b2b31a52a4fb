import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Deal } from '../../../src/contract/market/deal.ts'
import { Crash } from '../../support/object-sql.ts'
import { TestMarket } from '../../support/market-in-memory.ts'

const scopes = ['alice', 'bob', 'carol'] as const
const name = fc.constantFrom(...scopes)
const account = name.map((scope) => `scope:${scope}`)
const number = fc.integer({ min: 0, max: 9 })
const artifact = fc.constantFrom('reflex:a@1', 'reflex:a@2', 'reflex:b@1', 'skill:c@1.0.0')
const terms = fc.record(
  {
    days: fc.integer({ min: 1, max: 5 }),
    fires: fc.integer({ min: 1, max: 5 }),
    per_decision: fc.integer({ min: 1, max: 9 }),
    resale: fc.boolean(),
    royalty_percent: fc.integer({ min: 0, max: 50 }),
  },
  { requiredKeys: [] },
)

/** Operations, invalid ones among them. Small numbers, so that they meet. */
const operation = fc.oneof(
  fc.record({ op: fc.constant('list' as const), n: number, artifact, seller: account, kind: fc.constantFrom('licence', 'copy', 'ownership'), price: fc.integer({ min: 1, max: 60 }), terms }),
  fc.record({ op: fc.constant('resell' as const), n: number, deal: number, price: fc.integer({ min: 1, max: 60 }), kind: fc.constantFrom('licence', 'copy', 'ownership') }),
  fc.record({ op: fc.constant('offer' as const), n: number, listing: number, buyer: account, timeout_s: fc.integer({ min: 10, max: 100_000 }) }),
  fc.record({ op: fc.constant('decide' as const), deal: number, decision: fc.constantFrom('accept', 'accept', 'accept', 'reject', 'cancel', 'refund'), by: fc.oneof(fc.constant('right'), account), state: fc.constantFrom('active', 'active', 'active', 'retired') }),
  fc.record({ op: fc.constant('use' as const), deal: number, scope: name, fires: number, certified: number }),
  fc.record({ op: fc.constant('revoke' as const), artifact }),
  fc.record({ op: fc.constant('unlist' as const), listing: number }),
  fc.record({ op: fc.constant('transfer' as const), n: number, debit: account, credit: account, amount: fc.integer({ min: 1, max: 150 }) }),
  fc.record({ op: fc.constant('wait' as const), s: fc.integer({ min: 0, max: 200_000 }) }),
)
type Operation = typeof operation extends fc.Arbitrary<infer One> ? One : never

function apply(market: TestMarket, step: Operation): unknown {
  const deals = [`scope:nobody`]
  switch (step.op) {
    case 'list':
      return market.list({ ...step, listing_id: `l${step.n}`, kind: step.kind as 'copy' })
    case 'resell': {
      const bought = market.act((rooms) => rooms.deals.deal(`d${step.deal}`))
      const { artifact: copy } = bought?.delivery ?? {}
      return copy && bought && market.list({ listing_id: `l${step.n}`, artifact: copy, seller: bought.buyer, price: step.price, kind: step.kind as 'copy', terms: { resale: true, royalty_percent: 30 } })
    }
    case 'offer':
      return market.offer({ id: `d${step.n}`, buyer: step.buyer, timeout_s: step.timeout_s }, `l${step.listing}`)
    case 'decide': {
      const found = market.act((rooms) => rooms.deals.deal(`d${step.deal}`))
      const right = step.decision === 'cancel' ? found?.buyer : found?.seller
      return market.decide(step.decision as 'accept', `d${step.deal}`, step.by === 'right' ? (right ?? deals[0] ?? '') : step.by, step.state)
    }
    case 'use':
      return market.use(step.scope, step.fires, step.certified, `d${step.deal}`)
    case 'revoke':
      return market.act((rooms, now) => rooms.deals.revoke({ artifact: step.artifact, hash: `hash of ${step.artifact}`, reason: 'lapsed' }, now))
    case 'unlist':
      return market.act((rooms, now) => rooms.deals.unlist(`l${step.listing}`, 'closed', now))
    case 'transfer':
      return market.act(({ ledger }, now) => ledger.transfer([{ ...step, id: `t${step.n}` }].map(({ op: _op, n: _n, ...one }) => one), { opens: [step.debit, step.credit], privileged: false }, now))
    case 'wait':
      market.now += step.s * 1000
      return market.act(() => null)
  }
}

const open = (): TestMarket => {
  const market = new TestMarket()
  for (const scope of scopes) market.mint(`scope:${scope}`, 100)
  return market
}

const dealsOf = (market: TestMarket): Deal[] =>
  Array.from({ length: 10 }, (_, n) => market.act(({ deals }) => deals.deal(`d${n}`))).filter((deal) => deal !== null)

/** The rules that hold after each operation. */
function check(market: TestMarket): void {
  const audit = market.act(({ ledger }) => ledger.audit())
  expect(audit).toMatchObject({ ok: true, minted: 300, problems: [] })
  const deals = dealsOf(market)
  for (const deal of deals) {
    const posted = market.act(({ ledger }) => ledger.transfers([`deal:${deal.deal_id}:post`])).length === 1
    const sold = ['accepted', 'refunded', 'settled'].includes(deal.status)
    // Delivered if and only if paid.
    expect([posted, deal.delivery !== null, deal.paid + deal.held > 0 || deal.status === 'refunded' || deal.status === 'settled'], deal.status).toEqual([sold, sold, sold])
    if (deal.status !== 'accepted') expect(deal.held).toBe(0)
    if (deal.delivery && deal.kind === 'licence') expect(deal.delivery.in_use).toBe(deal.status === 'accepted')
  }
  const escrow = market.act(({ ledger }) => ledger.account('escrow'))
  const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)
  expect(escrow?.balance).toBe(sum(deals.map(({ held }) => held)))
  expect(escrow?.credits_pending).toBe(sum(deals.filter(({ status }) => status === 'offered').map(({ price }) => price)))
}

test('goods are delivered if and only if they are paid, and no unit is made or lost', () => {
  fc.assert(
    fc.property(fc.array(operation, { minLength: 20, maxLength: 60 }), (steps) => {
      const market = open()
      for (const step of steps) {
        apply(market, step)
        check(market)
      }
    }),
    { numRuns: Number(process.env['MARKET_RUNS'] ?? 30) },
  )
})

test('a crash at any statement leaves neither the money nor the goods moved', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(operation, fc.integer({ min: 0, max: 25 })), { minLength: 20, maxLength: 60 }), (steps) => {
      const market = open()
      for (const [step, crash_at] of steps) {
        market.sql.crash_at = crash_at
        const { now } = market
        expect(() => apply(market, step)).toThrow(Crash)
        Object.assign(market, { now })
        market.sql.crash_at = null
        check(market)
        apply(market, step)
        check(market)
      }
    }),
    { numRuns: Number(process.env['MARKET_RUNS'] ?? 15) },
  )
})
