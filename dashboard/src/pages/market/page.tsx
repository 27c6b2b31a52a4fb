import { useLocation } from 'preact-iso'
import { listings } from '../../../../src/features/market/contract/lists.ts'
import { query, hasRole, part, useGet, request } from '../../api/index.ts'
import { submitted, useAction } from '../../api/use-action.ts'
import { List } from '../../ui/list.tsx'
import { Page, Section, NeedsRole } from '../../ui/page.tsx'
import * as lists from '../../../../src/features/market/contract/lists.ts'
import type { Account } from '../../../../src/features/market/contract/account.ts'
import type { Contract } from '../../../../src/features/market/contract/service.ts'
import type { Transfer } from '../../../../src/features/market/contract/transfer.ts'
import { Loaded, Empty, ErrorBox } from '../../ui/feedback.tsx'
import { Facts } from '../../ui/facts.tsx'
import { count, scrip, counted, usd } from '../../ui/numbers.ts'
import { RequestForm } from '../../ui/request-form.tsx'
import type { TableColumn } from '../../ui/table.tsx'
import { visible, Text } from '../../ui/text.tsx'
import { contractLink, Path, listingLink } from './links.tsx'
import * as lists from '../../../../src/features/market/contract/lists.ts'
import { columnsOf } from '../../ui/column.tsx'
import { AccountLink, TraceLink, ScopeLink, dealLink } from '../../ui/links.tsx'
import { Time } from '../../ui/time.tsx'
import { Decide } from './decide.tsx'
import * as lists from '../../../../src/features/market/contract/lists.ts'
import type { Deal } from '../../../../src/features/market/contract/deal.ts'
import { Status } from '../../ui/status.tsx'
import * as lists from '../../../../src/features/market/contract/lists.ts'
import { useSignal } from '@preact/signals'
import type { FoundListing, Listing, ListingTerms } from '../../../../src/features/market/contract/listing.ts'
import type { TrialReport } from '../../../../src/features/market/contract/trial.ts'

const termNames: Record<keyof ListingTerms, string> = {
  days: 'Ends after days',
  fires: 'Actions in a scope, at most',
  per_decision: 'Scrip per certified decision',
  most_scopes: 'Scopes, at most',
  resale: 'May be sold on',
  royalty_percent: 'Royalty in percent',
  trial_fee: 'Scrip per trial',
}
const DAY_MS = 86_400_000

function ListingPage({ id }: { id: string }) {
  const data = useGet<FoundListing>(`/v1/market/listings/${part(id)}`)
  return (
    <Page title={data.value?.artifact ?? 'Listing'} path={<Path />}>
      <Loaded data={data}>
        {(listing) => (
          <>
            <p>
              <Text text={listing.description} most={2000} />
            </p>
            <Facts of={listing} columns={terms} />
            <Proof listing={listing} />
            {listing.state === 'open' && (
              <>
                <Trial id={id} fee={listing.terms.trial_fee ?? 0} />
                {hasRole('operator') ? <Offer listing={listing} /> : <NeedsRole role="operator" what="Buying" />}
              </>
            )}
          </>
        )}
      </Loaded>
    </Page>
  )
}

const terms: TableColumn<FoundListing>[] = [
  { title: 'State', of: ({ state }) => state, kind: 'status' },
  { title: 'Reason', of: ({ state_reason }) => state_reason },
  { title: 'Kind', of: ({ kind }) => kind },
  { title: 'Price', of: ({ price }) => price, kind: 'scrip' },
  { title: 'Seller', of: ({ seller }) => seller, kind: 'account' },
  { title: 'Expires', of: ({ expires_at }) => expires_at, kind: 'time' },
  ...Object.entries(termNames).map(([name, title]) => ({ title, of: (listing: Listing) => listing.terms[name as keyof ListingTerms] })),
]

const proof: TableColumn<FoundListing>[] = [
  { title: 'Certificate', of: ({ figures }) => figures.agreement?.state ?? 'none' },
  { title: 'Agrees, at least', of: ({ figures }) => figures.agreement?.lower_bound, kind: 'share' },
  { title: 'Compared', of: ({ figures }) => figures.agreement?.compared, kind: 'count' },
  { title: 'Saves per 1,000 events', of: ({ figures }) => figures.usd_saved_per_1000, kind: 'usd' },
  { title: 'Model calls saved per 1,000 events', of: ({ figures }) => figures.model_calls_saved_per_1000, kind: 'count' },
  {
    title: 'Fires',
    of: ({ figures: { fires, failures, overruled } }) => `${count(fires)}, ${count(failures)} failed, ${count(overruled)} overruled`,
  },
  { title: 'Scopes', of: ({ figures: { scopes, other_scopes } }) => `${scopes}, ${other_scopes} not the owner's` },
  { title: 'Event types', of: ({ figures }) => figures.event_types.join(', ') },
  { title: 'Tests', of: ({ figures }) => figures.tests },
]

const Proof = ({ listing }: { listing: FoundListing }) => (
  <Section title="Proof">
    <Facts of={listing} columns={proof} />
    <p>
      {listing.rank.score} points, measured <Time at={listing.measured_at} />:
    </p>
    <ul>
      {listing.rank.because.map(({ points, reason }) => (
        <li key={reason}>
          <b>{points}</b> {reason}
        </li>
      ))}
    </ul>
  </Section>
)

function Trial({ id, fee }: { id: string; fee: number }) {
  const report = useSignal<TrialReport | null>(null)
  const since = new Date(Date.now() - 7 * DAY_MS).toISOString()
  return (
    <Section title="Try it on your recordings">
      <RequestForm<TrialReport>
        of={lists.trial}
        given={{ id, since }}
        verb={`Evaluate on the last 7 days${fee > 0 ? ` for ${scrip(fee)}` : ''}`}
        onDone={(found) => (report.value = found)}
      />
      {report.value && <Tried report={report.value} />}
    </Section>
  )
}

const Tried = ({ report: { contexts, fires, agreement, missed, would_save } }: { report: TrialReport }) => (
  <p role="status">
    On {counted(contexts.recorded + contexts.rebuilt, 'event')} it fires {counted(fires, 'time')}: {counted(agreement.agreed, 'decision')}{' '}
    agreed, {count(agreement.disagreed)} differed. It leaves {counted(missed, 'event')} with an action to others.
    {would_save && ` It would have saved about ${would_save.model_calls.toFixed(1)} model calls and ${usd(would_save.usd)}.`}
  </p>
)

function Offer({ listing: { listing_id, price } }: { listing: Listing }) {
  const { route } = useLocation()
  return (
    <Section title="Buy">
      <RequestForm<Deal>
        of={lists.offer}
        given={{ id: listing_id }}
        verb={`Offer ${scrip(price)}`}
        onDone={({ deal_id }) => route(dealLink(deal_id))}
      />
      <p class="quiet">
        The money is held until the seller answers. A licence begins in shadow mode in your scope. A scope that the seller covers needs
        none: the reflex may act there already.
      </p>
    </Section>
  )
}

type Chained = { settings: { reflexes: { id: string }[] } }

/** The buyer's next step: the chains of the scopes of the licence name the reflex. */
function PutToUse({ deal: { artifact, delivery } }: { deal: Deal }) {
  const [, id] = /^reflex:([^@]+)@/.exec(artifact) ?? []
  if (id === undefined || delivery?.kind !== 'licence' || !delivery.in_use) return null
  return (
    <Section title="Use">
      {(delivery.scopes ?? []).map((scope) =>
        scope.includes('*') ? (
          <p key={scope}>Scopes that match {scope} run it once their setting reflexes names it.</p>
        ) : (
          <Scope key={scope} scope={scope} id={id} />
        ),
      )}
    </Section>
  )
}

function Scope({ scope, id }: { scope: string; id: string }) {
  const path = `/v1/scopes/${part(scope)}`
  const data = useGet<Chained>(path)
  const { run, busy, problem } = useAction((reflexes: object[]) => request('PATCH', path, { body: { reflexes } }))
  const add = async (chain: object[]) => {
    const answer = await run([...chain, { id }])
    if (answer.ok) data.reload()
  }
  return (
    <Loaded data={data}>
      {({ settings: { reflexes } }) => (
        <>
          <p>
            {reflexes.some((one) => one.id === id) ? (
              <>
                The chain of <ScopeLink scope={scope} /> names it. It is compared with the turns there first, and acts once it is proven.
              </>
            ) : (
              <>
                The chain of <ScopeLink scope={scope} /> does not name it yet.{' '}
                {hasRole('operator') && (
                  <button type="button" disabled={busy} onClick={() => void add(reflexes)}>
                    Run it there
                  </button>
                )}
              </>
            )}
          </p>
          <ErrorBox problem={problem} />
        </>
      )}
    </Loaded>
  )
}

const EVERY_MS = 3000
const verbs: Partial<Record<Deal['status'], string[]>> = { offered: ['accept', 'reject', 'cancel'], accepted: ['refund'] }

const delivered = ({ delivery }: Deal): string | null =>
  delivery &&
  [
    `${delivery.artifact}${delivery.scopes ? ` in ${delivery.scopes.join(', ')}` : ''}${delivery.in_use ? '' : ', no longer in use'}`,
    ...Object.entries(delivery.used).map(([scope, used]) => `${scope}: ${used} actions`),
  ].join('; ')

const facts = columnsOf<Deal>(lists.deals, [
  { title: 'Artifact', of: ({ artifact }) => artifact, to: ({ listing_id }) => listingLink(listing_id) },
  { title: 'Paid', of: ({ price, paid, held }) => `${scrip(price)}: ${count(paid)} paid, ${count(held)} held` },
  { title: 'Expires', of: ({ status, expires_at }) => (status === 'offered' ? expires_at : null), kind: 'time' },
  { title: 'Delivered', of: delivered },
])

function DealPage({ id }: { id: string }) {
  const path = `/v1/market/deals/${part(id)}`
  const data = useGet<Deal>(path, { every_ms: EVERY_MS })
  return (
    <Page title="Deal" path={<Path />}>
      <Loaded data={data}>
        {(deal) => (
          <>
            <Facts of={deal} columns={facts} />
            <Decide path={path} verbs={verbs[deal.status] ?? []} onDone={data.reload} />
            <PutToUse deal={deal} />
            <ol class="steps">
              {deal.history.map(({ at, state, by, reason }, index) => (
                <li key={index}>
                  <Status status={state} /> by {visible(by)} <Time at={at} /> {reason !== null && <Text text={reason} />}
                </li>
              ))}
            </ol>
          </>
        )}
      </Loaded>
    </Page>
  )
}

const EVERY_MS = 3000
const verbs: Record<Contract['status'], string[]> = {
  proposed: ['accept', 'reject', 'end'],
  accepted: ['end', 'dispute'],
  rejected: [],
  ended: ['dispute'],
  disputed: ['end', 'dispute'],
}

const facts = columnsOf<Contract>(lists.contracts, [
  { title: 'Reason', of: ({ reason }) => reason },
  { title: 'Spent', of: ({ paid }) => paid, kind: 'scrip' },
  { title: 'Proposed', of: ({ created_at }) => created_at, kind: 'time' },
  { title: 'Ended', of: ({ ended_at }) => ended_at, kind: 'time' },
])

/** The life of a contract: its terms, its calls and its disputes. */
function ContractPage({ id }: { id: string }) {
  const path = `/v1/market/contracts/${part(id)}`
  const data = useGet<Contract>(path, { every_ms: EVERY_MS })
  return (
    <Page title="Contract" path={<Path />}>
      <Loaded data={data}>
        {(contract) => (
          <>
            <Facts of={contract} columns={facts} />
            <Decide path={path} verbs={verbs[contract.status]} onDone={data.reload} />
            <Disputes contract={contract} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

const Disputes = ({ contract: { disputes } }: { contract: Contract }) => (
  <Section title="Disputes">
    {disputes.length === 0 && <Empty title="Nobody disputes it." />}
    {disputes.map(({ by, at, reason, traces }) => (
      <article key={at} class="card">
        <p>
          <AccountLink id={by} /> <Time at={at} />: <Text text={reason} />
        </p>
        <p>The traces that were named, and those of the latest calls. Each has what both sides did.</p>
        <ol>
          {traces.map((id) => (
            <li key={id}>
              <TraceLink id={id} text={id} />
            </li>
          ))}
        </ol>
      </article>
    ))}
  </Section>
)

const facts: TableColumn<Account>[] = [
  { title: 'Balance', of: ({ balance }) => scrip(balance) },
  { title: 'Available', of: ({ available }) => scrip(available) },
  { title: 'Pending', of: ({ debits_pending, credits_pending }) => `−${count(debits_pending)}, +${scrip(credits_pending)}` },
  { title: 'State', of: ({ closed }) => (closed ? 'closed' : null) },
]

/** The balance of an account, its deals, its contracts and its statement. */
function AccountPage({ id }: { id: string }) {
  const { route } = useLocation()
  const data = useGet<Account>(`/v1/ledger/accounts/${part(id)}`)
  const asked = { account: id, limit: 100 }
  return (
    <Page title={visible(id)} path={<Path />}>
      <Loaded data={data}>{(account) => <Facts of={account} columns={facts} />}</Loaded>
      <Section title="Deals">
        <List
          of={lists.deals}
          fields={asked}
          label="Its deals"
          own={[{ title: 'Side', of: ({ buyer }) => (buyer === id ? 'buys' : 'sells'), width: 5 }]}
          empty="It has no deals."
        />
      </Section>
      {id.startsWith('scope:') && (
        <Section title="Contracts">
          <List
            of={lists.contracts}
            fields={asked}
            label="Its contracts"
            own={[{ title: 'Side', of: ({ proposer }) => (proposer === id ? 'calls' : 'is called'), width: 6 }]}
            empty="It has no contracts."
          />
          {hasRole('operator') && (
            <RequestForm<Contract>
              of={lists.proposal}
              given={{ proposer: id }}
              verb="Propose a contract"
              onDone={({ contract_id }) => route(contractLink(contract_id))}
            />
          )}
        </Section>
      )}
      <Section title="Statement">
        <List of={lists.statement} fields={{ id, limit: 100 }} label="Its transfers" own={transfers(id)} empty="No transfer took part." />
      </Section>
    </Page>
  )
}

/** As the account sees them: with a sign, and with the other side. */
const transfers = (account: string): TableColumn<Transfer>[] => [
  { title: 'Amount', cell: ({ debit, amount }) => `${debit === account ? '−' : '+'}${scrip(amount)}`, width: 8, numeric: true },
]

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
