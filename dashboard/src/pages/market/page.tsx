import { useLocation } from 'preact-iso'
import { listings } from '../../../../src/features/market/contract/lists.ts'
import { query } from '../../api/index.ts'
import { submitted } from '../../api/use-action.ts'
import { List } from '../../ui/list.tsx'
import { Page } from '../../ui/page.tsx'
import { AccountPage } from './account.tsx'
import { ContractPage } from './contract.tsx'
import { DealPage } from './deal.tsx'
import { ListingPage } from './listing.tsx'

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
      <List of={listings} fields={{ q, sort, limit: 100 }} label="Listings" empty="No listing matches.">
        <p>
          Sell a version with <code>reflex market list reflex:ID@VERSION</code>.
        </p>
      </List>
    </Page>
  )
}
