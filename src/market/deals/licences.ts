import type { LicenceUse, Revocation } from '../../contract/market/ledger-api.ts'
import { matchesScope } from '../../contract/settings/scope-pattern.ts'
import { LEDGER_ACTS, type Desk } from './desk.ts'
import { earnedBy, endedBy } from './earned.ts'
import { runningOf, type DealRecord } from './records.ts'

/** Counts what scopes report. A licence that is paid by use is paid for it, or ends by it. */
export function reportUse(desk: Desk, uses: readonly LicenceUse[], now: number): void {
  for (const use of uses) {
    const deal = desk.deals.find(use.deal_id)
    const covers = deal?.delivery?.scopes?.some((pattern) => matchesScope(pattern, use.scope)) ?? false
    if (!deal || !covers || !desk.deals.use(use)) continue
    if (deal.status === 'accepted') advance(desk, deal, now)
    else desk.save(deal, now)
  }
}

/** Pays what is earned by now, and ends a licence whose end has come. */
export function advance(desk: Desk, deal: DealRecord, at: number): void {
  const running = runningOf(deal)
  const used = desk.deals.used(deal.deal_id)
  const ended = endedBy(running, used, at)
  if (ended !== null) desk.endLicence(deal, 'settled', { by: LEDGER_ACTS, reason: ended }, at)
  else desk.save(desk.payments.pay(deal, earnedBy(running, used, at), at).deal, at)
}

/** Closes the listings of a version, returns the money of offers and ends its licences. */
export function revoke(desk: Desk, { artifact, hash, reason }: Revocation, now: number): void {
  const why = { by: LEDGER_ACTS, reason }
  for (const listing of desk.listings.openWith(hash))
    if (listing.artifact === artifact) desk.closeListing(listing, 'closed', reason, why, now)
  for (const deal of desk.deals.runningOf(artifact)) {
    if (deal.status === 'offered') desk.endOffer(deal, 'rejected', why, now)
    else if (deal.kind === 'licence') desk.endLicence(deal, 'refunded', why, now)
  }
}
