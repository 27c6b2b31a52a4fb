import { useLocation } from 'preact-iso'
import type { FoundListing } from '../../../../src/features/market/contract/listing.ts'
import { query } from '../../api/index.ts'
import { submitted } from '../../api/use-action.ts'
import { usePages } from '../../api/use-pages.ts'
import { Empty, LoadedList } from '../../ui/feedback.tsx'
import { count, percent, usd } from '../../ui/numbers.ts'
import { Page } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { visible } from '../../ui/text.tsx'
import { AccountPage } from './account.tsx'
import { ContractPage } from './contract.tsx'
import { DealPage } from './deal.tsx'
import { ListingPage } from './listing.tsx'
import { listingLink, scrip } from './links.tsx'

/** The listings; or the listing, deal, contract or account that the query names. */
export default function MarketPage() {
  const { listing, deal, contract, account } = useLocation().query
  if (listing) return <ListingPage id={listing} />
  if (deal) return <DealPage id={deal} />
  if (contract) return <ContractPage id={contract} />
  if (account) return <AccountPage id={account} />
  return <Search />
}

function Search() {
  const { query: asked, route } = useLocation()
  const q = asked['q']
  const sort = asked['sort']
  const list = usePages<FoundListing>(`/v1/market/listings${query({ q, sort, limit: 100 })}`)
  const search = (event: SubmitEvent) => {
    const of = submitted(event)
    route(of('account') === '' ? `/market${query({ q: of('q'), sort: of('sort') })}` : `/market${query({ account: of('account') })}`)
  }
  return (
    <Page title="Market">
      <form class="filters" role="search" onSubmit={search}>
        <input name="q" aria-label="Search listings" placeholder="words, event types, tools" defaultValue={q} />
        <select name="sort" aria-label="Order" defaultValue={sort}>
          {['rank', 'agreement', 'saved', 'fires', 'price', 'newest'].map((order) => (
            <option key={order}>{order}</option>
          ))}
        </select>
        <input name="account" aria-label="Account" placeholder="or an account: scope:NAME" size={26} />
        <button type="submit">Show</button>
      </form>
      <LoadedList
        pages={list}
        empty={
          <Empty title="No listing matches.">
            <p>
              Sell a version with <code>reflex market list reflex:ID@VERSION</code>.
            </p>
          </Empty>
        }
      >
        {(rows) => (
          <Table
            label="Listings"
            rows={rows}
            keyOf={({ listing_id }) => listing_id}
            onEnd={list.loadMore}
            columns={[
              { title: 'Artifact', cell: ({ listing_id, artifact }) => <a href={listingLink(listing_id)}>{visible(artifact)}</a> },
              { title: 'Points', cell: ({ rank }) => rank.score, width: '5rem', numeric: true },
              { title: 'Kind', cell: ({ kind }) => kind, width: '6rem' },
              { title: 'Price', cell: ({ price }) => scrip(price), width: '8rem', numeric: true },
              { title: 'Agrees, at least', cell: ({ figures }) => percent(figures.agreement?.lower_bound), width: '9rem', numeric: true },
              { title: 'Saves per 1,000', cell: ({ figures }) => usd(figures.usd_saved_per_1000), width: '8rem', numeric: true },
              { title: 'Fires', cell: ({ figures }) => count(figures.fires), width: '6rem', numeric: true },
              { title: 'Description', cell: ({ description }) => visible(description) },
            ]}
          />
        )}
      </LoadedList>
    </Page>
  )
}
