import { useLocation } from 'preact-iso'
import { useSignal } from '@preact/signals'
import type { Deal } from '../../../../src/features/market/contract/deal.ts'
import type { FoundListing, Listing, ListingTerms } from '../../../../src/features/market/contract/listing.ts'
import type { TrialReport } from '../../../../src/features/market/contract/trial.ts'
import { hasRole, part, post, useGet } from '../../api/index.ts'
import { submitted, useAction } from '../../api/use-action.ts'
import { ErrorBox, Loaded } from '../../ui/feedback.tsx'
import { dealLink } from '../../ui/links.tsx'
import { count, counted, percent, usd } from '../../ui/numbers.ts'
import { NeedsRole, Page, Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Fact, Facts, Text } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { AccountLink, Path, scrip } from './links.tsx'

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
            <Terms listing={listing} />
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

function Terms({ listing: { description, kind, price, seller, state, state_reason, expires_at, terms } }: { listing: Listing }) {
  return (
    <>
      <p>
        <Text text={description} most={2000} />
      </p>
      <Facts>
        <Fact name="State">
          <Status status={state} /> {state_reason}
        </Fact>
        <Fact name="Kind">{kind}</Fact>
        <Fact name="Price">{scrip(price)}</Fact>
        <Fact name="Seller">
          <AccountLink id={seller} />
        </Fact>
        {expires_at !== null && (
          <Fact name="Expires">
            <Time at={expires_at} />
          </Fact>
        )}
        {Object.entries(terms).map(([name, value]) => (
          <Fact key={name} name={termNames[name as keyof ListingTerms]}>
            {String(value)}
          </Fact>
        ))}
      </Facts>
    </>
  )
}

const Proof = ({ listing: { figures, rank, measured_at } }: { listing: FoundListing }) => (
  <Section title="Proof">
    <Facts>
      <Fact name="Certificate">{figures.agreement?.state ?? 'none'}</Fact>
      <Fact name="Agrees, at least">{percent(figures.agreement?.lower_bound)}</Fact>
      <Fact name="Compared">{count(figures.agreement?.compared)}</Fact>
      <Fact name="Saves per 1,000 events">
        {usd(figures.usd_saved_per_1000)}
        {figures.model_calls_saved_per_1000 !== null && `, ${count(figures.model_calls_saved_per_1000)} model calls`}
      </Fact>
      <Fact name="Fires">
        {count(figures.fires)}, {count(figures.failures)} failed, {count(figures.overruled)} overruled
      </Fact>
      <Fact name="Scopes">
        {figures.scopes}, {figures.other_scopes} not the owner's
      </Fact>
      <Fact name="Event types">{figures.event_types.join(', ') || '–'}</Fact>
      {figures.tests && <Fact name="Tests">{figures.tests}</Fact>}
    </Facts>
    <p>
      {rank.score} points, measured <Time at={measured_at} />:
    </p>
    <ul>
      {rank.because.map(({ points, reason }) => (
        <li key={reason}>
          <b>{points}</b> {reason}
        </li>
      ))}
    </ul>
  </Section>
)

function Trial({ id, fee }: { id: string; fee: number }) {
  const report = useSignal<TrialReport | null>(null)
  const { run, busy, problem } = useAction((scope: string) =>
    post<TrialReport>(`/v1/market/listings/${part(id)}/try`, { scope, since: new Date(Date.now() - 7 * DAY_MS).toISOString() }),
  )
  const submit = async (event: SubmitEvent) => {
    const answer = await run(submitted(event)('scope'))
    if (answer.ok) report.value = answer.value
  }
  return (
    <Section title="Try it on your recordings">
      <form class="filters" onSubmit={(event) => void submit(event)}>
        <label class="inline">
          Your scope <input name="scope" required />
        </label>
        <button type="submit" disabled={busy}>
          Evaluate on the last 7 days{fee > 0 && ` for ${scrip(fee)}`}
        </button>
      </form>
      {problem && <ErrorBox problem={problem} />}
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
  /** Repeating the form makes no second offer. */
  const id = useSignal(crypto.randomUUID())
  const { run, busy, problem } = useAction((buyer: string) =>
    post<Deal>(`/v1/market/listings/${part(listing_id)}/offers`, { id: id.value, buyer }),
  )
  const submit = async (event: SubmitEvent) => {
    const answer = await run(submitted(event)('buyer'))
    if (answer.ok) route(dealLink(answer.value.deal_id))
  }
  return (
    <Section title="Buy">
      <form class="filters" onSubmit={(event) => void submit(event)}>
        <label class="inline">
          Account <input name="buyer" required placeholder="scope:NAME" />
        </label>
        <button type="submit" class="primary" disabled={busy}>
          Offer {scrip(price)}
        </button>
      </form>
      <p class="quiet">
        The money is held until the seller answers. A licence begins in shadow mode in your scope. A scope that the seller covers needs
        none: the reflex may act there already.
      </p>
      {problem && <ErrorBox problem={problem} />}
    </Section>
  )
}
