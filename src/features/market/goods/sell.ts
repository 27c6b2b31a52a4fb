import type { Refused, Result } from '../../../base/result.ts'
import { LEDGER, type LedgerCaller, type ListingRefused } from '../contract/ledger-api.ts'
import type { Listing, NewListing } from '../contract/listing.ts'
import type { Env } from '../../../env.ts'
import { sealVersion } from '../store/ownership.ts'
import { storeOf } from '../../../store/store.ts'
import type { FoundGoods } from '../goods.ts'

type TermRefused = Refused<'terms'> & { term: string; message: string }
export type SaleRefused = ListingRefused | Refused<'not_for_sale'> | TermRefused

/**
 * Lists a version of the seller, for persons and agents alike. Only an accepted listing seals its
 * content: at once here, and with D1's copy of it, should the process die before.
 */
export async function sell(
  env: Env,
  asked: NewListing & { listing_id: string },
  found: FoundGoods,
  by: LedgerCaller,
): Promise<Result<{ listing: Listing }, SaleRefused>> {
  const refused = termRefused(asked)
  if (refused) return refused
  const { state } = found.goods
  if (['retired', 'deprecated'].includes(state)) return { ok: false, reason: 'not_for_sale', detail: `${asked.artifact} is ${state}.` }
  const listed = await env.LEDGER.getByName(LEDGER).list(asked, found.goods, by)
  if (listed.ok) await sealVersion(storeOf(env), found)
  return listed
}

const LICENCE_TERMS = ['days', 'fires', 'per_decision', 'most_scopes'] as const

function termRefused({ kind, terms = {}, price }: NewListing): TermRefused | null {
  const foreign = kind === 'licence' ? undefined : LICENCE_TERMS.find((name) => terms[name] !== undefined)
  if (foreign !== undefined) return refuse(foreign, 'is a term of licences')
  if (kind !== 'copy' && terms.resale !== undefined) return refuse('resale', 'is a term of copies')
  if (kind === 'licence' && terms.royalty_percent !== undefined) return refuse('royalty_percent', 'is a term of copies and of ownership')
  if ((terms.per_decision ?? 0) > price) return refuse('per_decision', 'is more than the price, which is the budget')
  return null
}

const refuse = (name: string, message: string): TermRefused => ({
  ok: false,
  reason: 'terms',
  term: `terms.${name}`,
  message,
  detail: `terms.${name}: ${message}.`,
})
