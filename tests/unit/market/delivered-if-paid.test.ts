import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Deal } from '../../../src/features/market/contract/deal.ts'
import { goodsKinds } from '../../../src/features/market/contract/listing.ts'
import { Crash } from '../../support/object-sql.ts'
import { TestMarket } from '../../support/market-in-memory.ts'
import { assertProperty } from '../../support/property.ts'

const scopes = ['alice', 'bob', 'carol'] as const
const name = fc.constantFrom(...scopes)
const account = name.map((scope) => `scope:${scope}`)
const number = fc.integer({ min: 0, max: 7 })
const place = fc.integer({ min: 0, max: 3 })
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

const decisions = ['accept', 'accept', 'accept', 'accept', 'accept', 'reject', 'cancel', 'refund'] as const

const offers = fc.record({
  op: fc.constant('offer' as const),
  n: number,
  listing: place,
  buyer: account,
  timeout_s: fc.integer({ min: 10, max: 200_000 }),
})
const decisionsOnDeals = fc.record({
  op: fc.constant('decide' as const),
  deal: number,
  decision: fc.constantFrom(...decisions),
  by: fc.constantFrom('right', 'right', 'right', 'scope:alice', 'scope:bob'),
  state: fc.constantFrom('active', 'active', 'active', 'retired'),
})

/** Operations, invalid ones among them. Small numbers, so that they meet. */
const operation = fc.oneof(
  fc.record({
    op: fc.constant('list' as const),
    n: place,
    artifact,
    seller: account,
    kind: fc.constantFrom(...goodsKinds, 'copy' as const),
    price: fc.integer({ min: 1, max: 30 }),
    terms,
  }),
  fc.record({
    op: fc.constant('resell' as const),
    n: place,
    deal: number,
    price: fc.integer({ min: 1, max: 30 }),
    kind: fc.constantFrom(...goodsKinds, 'copy' as const),
  }),
  offers,
  offers,
  decisionsOnDeals,
  decisionsOnDeals,
  decisionsOnDeals,
  fc.record({ op: fc.constant('use' as const), deal: number, scope: name, fires: number, certified: number }),
  fc.record({ op: fc.constant('revoke' as const), artifact }),
  fc.record({ op: fc.constant('unlist' as const), listing: place }),
  fc.record({ op: fc.constant('transfer' as const), n: number, debit: account, credit: account, amount: fc.integer({ min: 1, max: 150 }) }),
  fc.record({ op: fc.constant('wait' as const), s: fc.integer({ min: 0, max: 40_000 }) }),
)
type Operation = typeof operation extends fc.Arbitrary<infer One> ? One : never

function apply(market: TestMarket, step: Operation): void {
  switch (step.op) {
    case 'list':
      market.list({ ...step, listing_id: `l${step.n}` })
      return
    case 'resell':
      resell(market, step)
      return
    case 'offer':
      market.offer({ id: `d${step.n}`, buyer: step.buyer, timeout_s: step.timeout_s }, `l${step.listing}`)
      return
    case 'decide':
      decide(market, step)
      return
    case 'use':
      market.use(step.scope, step.fires, step.certified, `d${step.deal}`)
      return
    case 'revoke': {
      const revocation = { artifact: step.artifact, hash: `hash of ${step.artifact}`, reason: 'its certificate has lapsed' }
      market.act(({ deals }, now) => deals.revoke(revocation, now))
      return
    }
    case 'unlist':
      market.act(({ deals }, now) => deals.unlist(`l${step.listing}`, { reason: 'closed' }, now))
      return
    case 'transfer': {
      const { n, debit, credit, amount } = step
      const transfer = { id: `t${n}`, debit, credit, amount }
      market.act(({ ledger }, now) => ledger.transfer([transfer], { opens: [debit, credit], privileged: false }, now))
      return
    }
    case 'wait':
      market.now += step.s * 1000
      market.act(() => null)
  }
}

function resell(market: TestMarket, { n, deal, price, kind }: Extract<Operation, { op: 'resell' }>): void {
  const bought = market.act(({ deals }) => deals.deal(`d${deal}`))
  const artifact_bought = bought?.delivery?.artifact ?? 'reflex:none@1'
  const conditions = { resale: true, royalty_percent: 30 }
  market.list({ listing_id: `l${n}`, artifact: artifact_bought, seller: bought?.buyer ?? 'scope:nobody', price, kind, terms: conditions })
}

function decide(market: TestMarket, { deal, decision, by, state }: Extract<Operation, { op: 'decide' }>): void {
  const found = market.act(({ deals }) => deals.deal(`d${deal}`))
  const right = decision === 'cancel' ? found?.buyer : found?.seller
  market.decide(decision, `d${deal}`, by === 'right' ? (right ?? 'scope:nobody') : by, state)
}

const open = (): TestMarket => {
  const market = new TestMarket()
  for (const scope of scopes) market.mint(`scope:${scope}`, 100)
  return market
}

const dealsOf = (market: TestMarket): Deal[] =>
  Array.from({ length: 10 }, (_, n) => market.act(({ deals }) => deals.deal(`d${n}`))).filter((deal) => deal !== null)

const soldStates = new Set(['accepted', 'refunded', 'settled'])

/** The rules that hold after each operation, and what breaks them. */
function problemsOf(market: TestMarket): string[] {
  const audit = market.act(({ ledger }) => ledger.audit())
  const problems = [...audit.problems]
  if (!audit.ok || audit.minted !== 300) problems.push('the ledger does not add up')
  const deals = dealsOf(market)
  for (const deal of deals) {
    const isPaid = market.act(({ ledger }) => ledger.transfers([`deal:${deal.deal_id}:post`])).length === 1
    const isSold = soldStates.has(deal.status)
    const isDelivered = deal.delivery !== null
    if (isPaid !== isSold || isDelivered !== isSold)
      problems.push(`${deal.deal_id} ${deal.status}: paid ${isPaid}, delivered ${isDelivered}`)
    if (deal.status !== 'accepted' && deal.held !== 0) problems.push(`${deal.deal_id} has ended and holds ${deal.held}`)
    if (deal.status === 'accepted' && deal.held + deal.paid !== deal.price) problems.push(`${deal.deal_id} lost money`)
    if (deal.kind === 'licence' && deal.delivery && deal.delivery.in_use !== (deal.status === 'accepted'))
      problems.push(`${deal.deal_id} is ${deal.status}, and in use: ${deal.delivery.in_use}`)
  }
  const escrow = market.act(({ ledger }) => ledger.account('escrow'))
  const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0)
  if (escrow?.balance !== sum(deals.map(({ held }) => held))) problems.push('escrow has other money than the deals hold')
  const reserved = sum(deals.filter(({ status }) => status === 'offered').map(({ price }) => price))
  if (escrow?.credits_pending !== reserved) problems.push('other money is reserved than offers have')
  return problems
}

/** A sale of each kind: random steps alone may sell none of a kind. */
const saleOfEachKind: Operation[] = goodsKinds.flatMap((kind, n) => [
  { op: 'list', n, artifact: 'reflex:a@1', seller: 'scope:alice', kind, price: 5, terms: { days: 3 } },
  { op: 'offer', n, listing: n, buyer: 'scope:bob', timeout_s: 1000 },
  { op: 'decide', deal: n, decision: 'accept', by: 'right', state: 'active' },
])

test('goods are delivered if and only if they are paid, and no unit is made or lost', { tags: ['simulation'] }, () => {
  const sold = new Set<string>()
  assertProperty(
    'market/delivered-if-paid: any steps',
    fc.property(fc.array(operation, { minLength: 40, maxLength: 60 }), (steps) => {
      const market = open()
      for (const step of steps) {
        apply(market, step)
        expect(problemsOf(market)).toEqual([])
      }
      for (const { kind, delivery } of dealsOf(market)) if (delivery) sold.add(kind)
    }),
    { numRuns: 8, examples: [[saleOfEachKind]] },
  )
  // Else the rules above would say little.
  expect([...sold].toSorted()).toEqual(['copy', 'licence', 'ownership'])
})

test('a crash at any statement leaves neither the money nor the goods moved', { tags: ['simulation'] }, () => {
  assertProperty(
    'market/delivered-if-paid: crashes',
    fc.property(fc.array(fc.tuple(operation, fc.integer({ min: 0, max: 25 })), { minLength: 40, maxLength: 60 }), (steps) => {
      const market = open()
      for (const [step, crash_at] of steps) {
        const { now } = market
        market.sql.crash_at = crash_at
        expect(() => apply(market, step)).toThrow(Crash)
        market.now = now
        market.sql.crash_at = null
        expect(problemsOf(market)).toEqual([])
        apply(market, step)
        expect(problemsOf(market)).toEqual([])
      }
    }),
    { numRuns: 8 },
  )
})
