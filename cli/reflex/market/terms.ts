import type { ListingTerms } from '../../../src/contract/market/listing.ts'
import { counted } from '../../lib/text.ts'

/** The terms of a listing or a deal in words. */
export function termsText({ days, fires, per_decision, most_scopes, resale, royalty_percent, trial_fee }: ListingTerms): string {
  const parts = [
    days !== undefined && `ends after ${counted(days, 'day')}`,
    fires !== undefined && `ends in a scope after ${counted(fires, 'action')}`,
    per_decision !== undefined && `${per_decision} for each certified decision, the price is the budget`,
    most_scopes === 'any' && 'for any scopes and patterns',
    typeof most_scopes === 'number' && `for ${counted(most_scopes, 'scope')}`,
    resale === true && 'may be sold on',
    royalty_percent !== undefined && `a royalty of ${royalty_percent} % of each resale`,
    trial_fee !== undefined && trial_fee > 0 && `${trial_fee} for a trial`,
  ]
  return parts.filter((part) => part !== false).join('; ')
}
