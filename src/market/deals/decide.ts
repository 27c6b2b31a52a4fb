import type { Deal } from '../../contract/market/deal.ts'
import type { DealRefused, LedgerApi } from '../../contract/market/ledger-api.ts'
import type { Result } from '../../base/result.ts'
import { endOf } from './earned.ts'
import { LEDGER_ACTS, type Desk } from './desk.ts'
import { artifactOf, presentDeal, withStep, type DealRecord } from './records.ts'

export type Decision = Parameters<LedgerApi['decide']>[1]
export type DecideBy = Parameters<LedgerApi['decide']>[2]
type Decided = Result<{ deal: Deal }, DealRefused>

/** Applies the answer of a side to an offer, or ends a licence. `copyName`: a new part of an id. */
export function decide(desk: Desk, deal_id: string, decision: Decision, by: DecideBy, at: { now: number; copyName: string }): Decided {
  const deal = desk.deals.find(deal_id)
  if (!deal) return refuse('not_found', `There is no deal ${deal_id}.`)
  const lapsed = desk.deals.used(deal_id).some(({ lapses }) => lapses > 0)
  const refused = mayDecide(deal, decision, { account: by.account, lapsed })
  if (refused) return refused
  if (!desk.payments.belongsTo(deal, by.account, by.key_id))
    return refuse('not_allowed', `${by.account} belongs to another key of this name.`)
  const why = { by: by.account, reason: by.reason ?? null }
  if (decision === 'accept') return accept(desk, deal, by, at)
  if (decision === 'refund') return done(desk, desk.endLicence(deal, 'refunded', why, at.now))
  return done(desk, desk.endOffer(deal, decision === 'reject' ? 'rejected' : 'cancelled', why, at.now))
}

/** The refusal by who decides and by what has happened, if there is one. */
export function mayDecide(
  deal: DealRecord,
  decision: Decision,
  { account, lapsed }: { account: string; lapsed: boolean },
): DealRefused | null {
  const { deal_id, seller, buyer, status, kind, held, terms } = deal
  if (account !== seller && account !== buyer) return refuse('not_allowed', `${account} takes no part in the deal ${deal_id}.`)
  if (decision === 'refund') {
    if (status === 'offered') return refuse('not_open', `The deal ${deal_id} is only an offer: its buyer can cancel it.`)
    if (status !== 'accepted') return refuse('decided', `The deal ${deal_id} is ${status}.`)
    if (kind !== 'licence' || held === 0) return refuse('nothing_left', `The deal ${deal_id} is paid in full: nothing is unexpired.`)
    if (account === buyer && terms.per_decision === undefined && !lapsed)
      return refuse(
        'not_allowed',
        `Only ${seller} refunds this licence, until its certificate lapses in a scope of it. A buyer ends licences that are paid by decision.`,
      )
    return null
  }
  const side = decision === 'cancel' ? buyer : seller
  if (account !== side) return refuse('not_allowed', `Only ${side} can ${decision} the deal ${deal_id}.`)
  if (status === 'expired') return refuse('expired', `The offer ${deal_id} expired at ${new Date(deal.expires_at).toISOString()}.`)
  return status === 'offered' ? null : refuse('decided', `The deal ${deal_id} is ${status}.`)
}

/** Payment and delivery, in the open transaction. */
function accept(
  desk: Desk,
  deal: DealRecord,
  { account, reason, goods_state }: DecideBy,
  { now, copyName }: { now: number; copyName: string },
): Decided {
  const changed = goodsChange(desk, deal, goods_state)
  if (changed !== null) {
    desk.endOffer(deal, 'rejected', { by: LEDGER_ACTS, reason: changed }, now)
    return refuse('goods_changed', `The offer ${deal.deal_id} is rejected and its money has returned: ${changed}.`)
  }
  const { licences } = desk.limits
  const full = deal.scopes?.find((scope) => desk.deals.licencesFor(scope) >= licences)
  if (full !== undefined) return refuse('limit', `${full} has ${licences} licences, which is the limit.`)
  const taken = desk.payments.take(deal, now)
  const held = { ...deal, held: deal.price, delivery: deliveryOf(deal, { now, copyName }) }
  // A licence is paid for as it is earned.
  const paid = deal.kind === 'licence' ? { deal: held, transfers: [] } : desk.payments.pay(held, deal.price, now)
  const sold = withStep(paid.deal, 'accepted', { at: now, by: account, reason: reason ?? null, transfers: [...taken, ...paid.transfers] })
  deliver(desk, sold, now)
  return done(desk, desk.enter(sold, now))
}

/** The reason that the goods are no longer those of the offer. */
function goodsChange(desk: Desk, deal: DealRecord, now: string | undefined): string | null {
  const { artifact, seller, goods_state: then } = deal
  const owner = desk.deals.bought(artifactOf(artifact))
  if (owner && owner.account !== seller) return `${artifact} belongs to ${owner.account} now`
  if (desk.payments.isClosed(deal)) return `the account ${seller} is closed`
  if (now === undefined || rank(now) >= Math.max(0, rank(then))) return null
  return rank(now) < 0 ? `${artifact} is ${now}` : `${artifact} was demoted from ${then} to ${now}`
}

const ranks: Record<string, number> = { draft: 0, candidate: 0, shadow: 1, active: 2 }
/** Versions that are retired, deprecated or missing are not sold. */
const rank = (state: string): number => ranks[state] ?? -1

function deliveryOf(
  { kind, artifact, terms, scopes }: DealRecord,
  { now, copyName }: { now: number; copyName: string },
): DealRecord['delivery'] {
  const name = artifactOf(artifact)
  const version = artifact.slice(name.length + 1)
  // The registry counts the versions of a reflex from 1.
  const copy = `${name.slice(0, LONGEST_ID - copyName.length - 1)}-${copyName}@${name.startsWith('reflex:') ? 1 : version}`
  const ends_at = kind === 'licence' ? endOf(terms, now) : null
  return { artifact: kind === 'copy' ? copy : artifact, scopes, from: now, ends_at, in_use: true }
}

/** `skill:` or `reflex:` and an id. */
const LONGEST_ID = 'skill:'.length + 64

function deliver(desk: Desk, { deal_id, kind, listing_id, seller, buyer, artifact, delivery }: DealRecord, now: number): void {
  if (kind === 'licence') return desk.deals.openLicence(deal_id, delivery?.scopes ?? [])
  if (kind === 'copy') return desk.deals.own(artifactOf(delivery?.artifact ?? artifact), buyer, deal_id)
  desk.deals.own(artifactOf(artifact), buyer, deal_id)
  desk.deals.sold(artifactOf(artifact), { seller, buyer })
  const why = { by: LEDGER_ACTS, reason: `${artifact} has been sold` }
  for (const listing of desk.listings.openOf(seller, artifactOf(artifact))) {
    const state = listing.listing_id === listing_id ? 'sold' : 'closed'
    // The deal of this sale is no longer an offer once it is written, after this.
    for (const offer of desk.deals.offersOn(listing.listing_id)) if (offer.deal_id !== deal_id) desk.endOffer(offer, 'rejected', why, now)
    desk.saveListing({ ...listing, state, state_reason: `sold to ${buyer} by the deal ${deal_id}` })
  }
}

const done = (desk: Desk, deal: DealRecord): Decided => ({ ok: true, deal: presentDeal(deal, desk.deals.used(deal.deal_id)) })
const refuse = (reason: DealRefused['reason'], detail: string): DealRefused => ({ ok: false, reason, detail })
