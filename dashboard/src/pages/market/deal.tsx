import type { Deal } from '../../../../src/contract/market/deal.ts'
import { part, useGet } from '../../api/index.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { count } from '../../ui/numbers.ts'
import { Page } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { Fact, Facts, Text, visible } from '../../ui/text.tsx'
import { Time } from '../../ui/time.tsx'
import { Decide } from './decide.tsx'
import { AccountLink, listingLink, Path, scrip } from './links.tsx'
import { PutToUse } from './put-to-use.tsx'

const EVERY_MS = 3000
const verbs: Partial<Record<Deal['status'], string[]>> = { offered: ['accept', 'reject', 'cancel'], accepted: ['refund'] }

/** The life of a deal. */
export function DealPage({ id }: { id: string }) {
  const path = `/v1/market/deals/${part(id)}`
  const data = useGet<Deal>(path, { every_ms: EVERY_MS })
  return (
    <Page title="Deal" path={<Path />}>
      <Loaded data={data}>
        {(deal) => (
          <>
            <Parts deal={deal} />
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

function Parts({ deal: { status, artifact, listing_id, kind, price, paid, held, seller, buyer, expires_at, delivery } }: { deal: Deal }) {
  return (
    <Facts>
      <Fact name="Status">
        <Status status={status} />
      </Fact>
      <Fact name="Goods">
        <a href={listingLink(listing_id)}>{visible(artifact)}</a>, {kind}
      </Fact>
      <Fact name="Price">
        {scrip(price)}: {count(paid)} paid, {count(held)} held
      </Fact>
      <Fact name="Seller">
        <AccountLink id={seller} />
      </Fact>
      <Fact name="Buyer">
        <AccountLink id={buyer} />
      </Fact>
      {status === 'offered' && (
        <Fact name="Expires">
          <Time at={expires_at} />
        </Fact>
      )}
      {delivery && (
        <Fact name="Delivered">
          {visible(delivery.artifact)}
          {delivery.scopes && ` in ${delivery.scopes.join(', ')}`}
          {!delivery.in_use && ', no longer in use'}
          {Object.entries(delivery.used).map(([scope, used]) => `; ${scope}: ${used} actions`)}
        </Fact>
      )}
    </Facts>
  )
}
