import { useLocation } from 'preact-iso'
import * as lists from '../../../../src/features/market/contract/lists.ts'
import { RequestForm } from '../../ui/request-form.tsx'
import type { TableColumn } from '../../ui/table.tsx'
import { useSignal } from '@preact/signals'
import type { Deal } from '../../../../src/features/market/contract/deal.ts'
import type { FoundListing, Listing, ListingTerms } from '../../../../src/features/market/contract/listing.ts'
import type { TrialReport } from '../../../../src/features/market/contract/trial.ts'
import { hasRole, part, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { dealLink } from '../../ui/links.tsx'
import { count, counted, scrip, usd } from '../../ui/numbers.ts'
import { NeedsRole, Page, Section } from '../../ui/page.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Text } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Path } from './links.tsx'

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

export function ListingPage({ id }: { id: string }) {
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
