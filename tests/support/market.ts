import { env } from 'cloudflare:workers'
import type { Listing } from '../../src/features/market/contract/listing.ts'
import type { ReflexVersion } from '../../src/contract/reflex.ts'
import { writeListings } from '../../src/features/market/store/listings.ts'

export const buildListing = (
  { id, version, hash }: Pick<ReflexVersion, 'id' | 'version' | 'hash'>,
  fields: Partial<Listing> = {},
): Listing => ({
  listing_id: `listing-${id}`,
  artifact: `reflex:${id}@${version}`,
  hash,
  kind: 'licence',
  price: 10,
  seller: 'scope:market/seller',
  terms: { days: 30 },
  description: '',
  event_types: [],
  tools: [],
  state: 'open',
  state_reason: null,
  created_at: new Date(1).toISOString(),
  expires_at: null,
  ...fields,
})

/** In D1, as the Ledger sends it. */
export async function listed(
  of: Pick<ReflexVersion, 'id' | 'version' | 'hash'>,
  fields: Partial<Listing> = {},
  revision = 1,
): Promise<Listing> {
  const listing = buildListing(of, fields)
  await writeListings(env.DB, [{ listing, revision }])
  return listing
}
