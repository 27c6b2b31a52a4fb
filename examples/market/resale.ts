import { RequestRefused, type Api } from '../../cli/lib/api.ts'
import type { Deal } from '../../src/features/market/contract/deal.ts'
import type { Listing } from '../../src/features/market/contract/listing.ts'
import type { Transfer } from '../../src/features/market/contract/transfer.ts'
import { accountPath, agree, BUYER, SELLER, THIRD, until, type Watch } from './steps.ts'

const COPY_PRICE = 60
const RESALE_PRICE = 100
export const ROYALTY_PERCENT = 20

/** `royalty`: what the maker received of the price of the sale. */
export type Resale = { copy: Deal; sale: Deal; royalty: number }

/** The buyer takes a copy that may be sold on, and sells a copy of it to a third desk. */
export async function sellOn(api: Api, artifact: string, watch: Watch): Promise<Resale> {
  const terms = { resale: true, royalty_percent: ROYALTY_PERCENT }
  const original = await list(api, { artifact, kind: 'copy', price: COPY_PRICE, seller: `scope:${SELLER}`, terms })
  const copy = await agree(api, original.listing_id, { id: 'oslo-copy', buyer: `scope:${BUYER}` })
  const bought = copy.delivery?.artifact ?? ''
  const offered = await until(
    // The copy is registered a moment after its payment.
    () => list(api, { artifact: bought, kind: 'copy', price: RESALE_PRICE, seller: `scope:${BUYER}` }).catch(nullIfMissing),
    'the copy is delivered',
    watch,
  )
  const sale = await agree(api, offered.listing_id, { id: 'bergen-copy', buyer: `scope:${THIRD}` })
  const { items } = await api.json<{ items: Transfer[] }>(`${accountPath(`scope:${SELLER}`)}/statement?limit=1000`)
  const royalties = items.filter(({ code, credit }) => code === 'royalty' && credit === `scope:${SELLER}`)
  return { copy, sale, royalty: royalties.reduce((sum, { amount }) => sum + amount, 0) }
}

const list = (api: Api, body: object): Promise<Listing> => api.json<Listing>('/v1/market/listings', { method: 'POST', body })

function nullIfMissing(error: unknown): null {
  if (error instanceof RequestRefused && error.status === 404) return null
  throw error
}
