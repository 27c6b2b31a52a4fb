import type { Deal } from '../../../../src/contract/market/deal.ts'
import type { Span } from '../../../../src/contract/reports/trace.ts'
import { part, useGet } from '../../api/index.ts'
import { accountLink, dealLink } from '../../ui/links.tsx'
import { count, usd } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { visible } from '../../ui/text.tsx'
import { numberOf, textOf } from './spans.ts'

const DEAL = 'reflex.licence.deal'
/** A bought reflex acted. */
export const isLicensed = (span: Span): boolean => textOf(span, DEAL) !== null

/** The deal under which a bought reflex acted, its seller, and the turn that the scope spared. */
export function Licence({ span }: { span: Span }) {
  const id = textOf(span, DEAL) ?? ''
  const deal = useGet<Deal>(`/v1/market/deals/${part(id)}`).value
  const [calls, tokens, cost] = ['model_calls', 'tokens', 'usd'].map((name) => numberOf(span, `reflex.licence.saved_${name}`))
  return (
    <Section title="Licence">
      <p class="card">
        {visible(textOf(span, 'reflex.id') ?? '')} acted under a licence, by <a href={dealLink(id)}>this deal</a>
        {deal && (
          <>
            {' '}
            with <a href={accountLink(deal.seller)}>{visible(deal.seller)}</a> for {count(deal.price)}
          </>
        )}
        .{' '}
        {typeof calls === 'number' ? (
          <>
            <b>
              It saved about {calls.toFixed(1)} model calls, {count(tokens)} tokens and {usd(cost)}
            </b>
            : what an average turn of this scope takes.
          </>
        ) : (
          'It saved nothing: it left the event to a turn.'
        )}
      </p>
    </Section>
  )
}
