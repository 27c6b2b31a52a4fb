import { setTimeout as wait } from 'node:timers/promises'
import { teach, type Taught } from '../../cli/learning/lesson.ts'
import type { Api } from '../../cli/lib/api.ts'
import { CliError } from '../../cli/lib/cli-error.ts'
import { count } from '../../cli/lib/text.ts'
import type { Account, LedgerAudit } from '../../src/features/market/contract/account.ts'
import type { Deal } from '../../src/features/market/contract/deal.ts'
import type { FoundListing, Listing } from '../../src/features/market/contract/listing.ts'
import type { TrialReport } from '../../src/features/market/contract/trial.ts'
import type { Message } from '../learning/input.ts'
import { eventsOf, filing } from '../learning/stage.ts'
import { sellOn, type Resale } from './resale.ts'
import { accountOf, BUYER, dealOf, funded, patch, pathOf, SELLER, THIRD, until, type Watch } from './steps.ts'

/** The share of the mails that the first desk gets; the other gets the rest. */
const TAUGHT = 0.55
/** The buyer's mails before it buys. */
const BEFORE = 100
const GRANT = 1000
const THIRD_GRANT = 200
const PRICE = 10
const FIRES = 300
const BUDGET = 200
/** Looks at the deals, 1.7 s apart: a scope reports its uses within a second or two. */
const MOST_SETTLING = 15

/** The rule of the seller for small offers: accept them, without a model. */
const SMALL_OFFERS = `function reflex(context) {
  for (const event of context.pending_purchases) {
    if (event.price <= ${PRICE}) {
      return { action_type: 'invoke_artifact', artifact_id: 'genesis_escrow', method: 'accept', args: [event.deal_id] }
    }
  }
  return null
}`

type Desk = { messages: readonly Message[]; host: string; trusted: readonly string[] }
type Purchase = { found: FoundListing; tried: TrialReport; deal: Deal; by: string }
export type Story = {
  ok: boolean
  learned: { id: string; description: string }[]
  seller_calls: number[]
  buyer_calls: number[]
  /** The buyer's mails before the purchases. */
  before: number
  purchases: Purchase[]
  resale: Resale
  accounts: { seller: Account; buyer: Account; third: Account; escrow: Account }
  audit: LedgerAudit
}

/** Lets a desk learn and sell, and another one find, try, buy and save. */
export async function trade(api: Api, desk: Desk, watch: Watch): Promise<Story> {
  const taught = Math.round(desk.messages.length * TAUGHT)
  const seller = await work(api, { desk, scope: SELLER, learns: true }, desk.messages.slice(0, taught), watch)
  const learned = await learnedBy(api, SELLER)
  if (learned.length === 0)
    throw new CliError('The first desk learned no reflex that acts.', 'Run it again with --json, and read its runs.')
  await answerSmallOffers(api)

  await patch(api, BUYER, { market: { opening_grant: GRANT } })
  await patch(api, THIRD, { market: { opening_grant: THIRD_GRANT } })
  const first = desk.messages.slice(taught, taught + BEFORE)
  const since = new Date().toISOString()
  const before = await work(api, { desk, scope: BUYER, learns: false }, first, watch)
  await funded(api, { scope: BUYER, grant: GRANT }, watch)
  await funded(api, { scope: THIRD, grant: THIRD_GRANT }, watch)

  watch.onProgress(`${BUYER} searches the market, tries what it finds, and buys`)
  await list(api, learned)
  const purchases = await buy(api, { since, learned }, watch)
  await patch(api, BUYER, { reflexes: purchases.map(({ found }) => referenceTo(found.artifact)) })
  const after = await work(api, { desk, scope: BUYER, learns: false }, desk.messages.slice(taught + BEFORE), watch)
  const buyer_calls = [...before.calls, ...after.calls]
  const resale = await sellOn(api, best(purchases), watch)
  const [accounts, audit] = await settled(api, purchases, watch)
  const saved = sum(before.calls) / before.calls.length > sum(after.calls.slice(-BEFORE)) / BEFORE
  const deals = await Promise.all(purchases.map(async (one) => ({ ...one, deal: await dealOf(api, one.deal.deal_id) })))
  return {
    ok: audit.ok && saved && resale.royalty > 0 && deals.some(({ deal }) => deal.paid > 0),
    learned,
    seller_calls: seller.calls,
    buyer_calls,
    before: first.length,
    purchases: deals,
    resale,
    accounts,
    audit,
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

/** Sends mails to a desk whose model files them, and counts its calls. */
function work(
  api: Api,
  { desk, scope, learns }: { desk: Desk; scope: string; learns: boolean },
  messages: readonly Message[],
  { signal, onProgress }: Watch,
): Promise<Taught> {
  const lesson = {
    scope,
    settings: {
      ...filing(desk.host),
      // The buyer starts no run of learning, but what it buys may act once it is proven there.
      learning: { mode: 'auto' as const, min_agreement: 0.95, audit_share: 0.02, trusted_sources: [...desk.trusted] },
    },
    events: eventsOf(messages),
    learn_after: learns ? [0.2, 0.35, 0.5].map((share) => Math.round(messages.length * share)) : [],
  }
  return teach(api, lesson, {
    signal,
    onProgress: ({ sent, of, doing }) =>
      onProgress(`${scope}: ${count(sent)} of ${count(of)} mails${doing === 'learning' ? '; learning' : ''}`),
  })
}

async function learnedBy(api: Api, scope: string): Promise<{ id: string; version: number; description: string }[]> {
  const query = new URLSearchParams({ owner: `scope:${scope}`, state: 'active', limit: '100' })
  const { items } = await api.json<{ items: { id: string; version: number; description: string }[] }>(`/v1/reflexes?${query.toString()}`)
  return items
}

/** Puts the rule for small offers in front of the seller's chain. */
async function answerSmallOffers(api: Api): Promise<void> {
  await api.json('/v1/reflexes', { method: 'POST', body: { id: 'small-offers', code: SMALL_OFFERS, state: 'active' } })
  const { settings } = await api.json<{ settings: { reflexes: object[] } }>(pathOf(SELLER))
  // With the setting `market` its agent gets the tools of the market, and offers as events.
  await patch(api, SELLER, { market: { least_price: 1, services: ['reflex:*'] }, reflexes: [{ id: 'small-offers' }, ...settings.reflexes] })
}

/** The first one at a small price for some fires; the others paid by the decision. */
async function list(api: Api, learned: readonly { id: string; version: number }[]): Promise<void> {
  for (const [index, { id, version }] of learned.entries()) {
    const priced = index === 0 ? { price: PRICE, terms: { fires: FIRES } } : { price: BUDGET, terms: { per_decision: 1 } }
    const body = { artifact: `reflex:${id}@${version}`, kind: 'licence', seller: `scope:${SELLER}`, ...priced }
    await api.json<Listing>('/v1/market/listings', { method: 'POST', body })
  }
}

async function buy(api: Api, { since, learned }: { since: string; learned: readonly unknown[] }, watch: Watch): Promise<Purchase[]> {
  const search = new URLSearchParams({ kind: 'licence', seller: `scope:${SELLER}` })
  const found = await until(
    async () => {
      const { items } = await api.json<{ items: FoundListing[] }>(`/v1/market/listings?${search.toString()}`)
      return items.length === learned.length ? items : null
    },
    'the market shows the listings',
    watch,
  )
  const purchases: Purchase[] = []
  for (const one of found) {
    const path = `/v1/market/listings/${one.listing_id}`
    const tried = await api.json<TrialReport>(`${path}/try`, { method: 'POST', body: { scope: BUYER, since } })
    const id = `oslo-${one.listing_id}`
    await api.json(`${path}/offers`, { method: 'POST', body: { id, buyer: `scope:${BUYER}`, scopes: [BUYER] } })
    const small = one.price <= PRICE
    if (!small) await api.json(`/v1/market/deals/${id}/accept`, { method: 'POST', body: {} })
    const deal = await until(
      async () => {
        const now = await dealOf(api, id)
        return now.status === 'offered' ? null : now
      },
      'the seller answers the offer',
      watch,
    )
    if (deal.status !== 'accepted') throw new CliError(`The deal ${id} is ${deal.status}.`)
    purchases.push({
      found: one,
      tried,
      deal,
      by: small ? 'its reflex small-offers, without a model' : 'this script, in place of a person',
    })
  }
  return purchases
}

/** The reflex that the market ranked first. */
const best = ([first]: readonly Purchase[]): string => first?.found.artifact ?? ''

const referenceTo = (artifact: string): { id: string } => ({ id: artifact.slice('reflex:'.length).split('@')[0] ?? '' })

type Settled = [Story['accounts'], LedgerAudit]

/** Waits until the buyer's last use is paid for: two looks that find the same. */
async function settled(api: Api, purchases: readonly Purchase[], watch: Watch): Promise<Settled> {
  let seen = ''
  await until(
    async () => {
      const deals = await Promise.all(purchases.map(({ deal }) => dealOf(api, deal.deal_id)))
      const now = JSON.stringify(deals.map(({ paid, delivery }) => [paid, delivery?.used]))
      const same = now === seen && deals.some(({ paid }) => paid > 0)
      seen = now
      await wait(same ? 0 : 1500, undefined, { signal: watch.signal })
      return same ? true : null
    },
    'the use of the licences is paid for',
    watch,
    MOST_SETTLING,
  )
  const [seller, buyer, third, escrow] = await Promise.all([
    accountOf(api, `scope:${SELLER}`),
    accountOf(api, `scope:${BUYER}`),
    accountOf(api, `scope:${THIRD}`),
    accountOf(api, 'escrow'),
  ])
  return [{ seller, buyer, third, escrow }, await api.json<LedgerAudit>('/v1/ledger/audit')]
}
