import * as lists from '../../../../src/features/market/contract/lists.ts'
import type { Deal } from '../../../../src/features/market/contract/deal.ts'
import { part, useGet, hasRole, request } from '../../api/index.ts'
import { Loaded, ErrorBox } from '../../ui/feedback.tsx'
import { count, scrip } from '../../ui/numbers.ts'
import { Page, Section } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { columnsOf } from '../../ui/column.tsx'
import { Facts } from '../../ui/facts.tsx'
import { Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Decide } from './decide.tsx'
import { listingLink, Path } from './links.tsx'
import { useAction } from '../../api/use-action.ts'
import { ScopeLink } from '../../ui/links.tsx'

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

export function DealPage({ id }: { id: string }) {
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
