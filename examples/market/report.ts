import { bucketsOf, curveText, per100 } from '../../cli/learning/curve.ts'
import type { Paint } from '../../cli/lib/paint.ts'
import { count, counted, harmless, wrap } from '../../cli/lib/text.ts'
import type { ListingTerms } from '../../src/features/market/contract/listing.ts'
import { ROYALTY_PERCENT } from './resale.ts'
import { BUYER, SELLER, THIRD } from './steps.ts'
import type { Story } from './trade.ts'

type Look = { columns: number; paint: Paint }

const BUCKET = 100
const MOST_COLUMNS = 100

/** The story of both desks, with the balances at its end. */
export function storyLines(story: Story, { columns, paint }: Look): string[] {
  const width = Math.min(columns - 1, MOST_COLUMNS)
  const text = (sentence: string): string[] => wrap(harmless(sentence), width - 2).map((line) => `  ${line}`)
  const { accounts, audit, buyer_calls, before, seller_calls, learned, purchases, resale } = story
  const { seller, buyer, third, escrow } = accounts
  const curve = {
    title: `Model calls of ${BUYER} per ${BUCKET} mails`,
    buckets: bucketsOf(buyer_calls, BUCKET),
    marks: [{ after: before, text: `it buys ${counted(purchases.length, 'licence')}` }],
  }
  const [first, last] = [buyer_calls.slice(0, BUCKET), buyer_calls.slice(-BUCKET)].map((calls) => bucketsOf(calls, BUCKET)[0])
  return [
    paint('bold', `${SELLER} learns, and sells`),
    ...text(
      `It filed ${counted(seller_calls.length, 'mail')} and learned ${counted(learned.length, 'reflex that acts', 'reflexes that act')}. It lists ${learned.length === 1 ? 'a licence' : 'licences'}.`,
    ),
    '',
    paint('bold', `${BUYER} finds, tries and buys`),
    ...purchases.flatMap((one) => purchaseText(one).flatMap(text)),
    '',
    ...curveText(curve, { columns: width, paint }),
    '',
    ...text(`Model calls for ${BUCKET} mails: ${first ? count(per100(first)) : '?'} before, ${last ? count(per100(last)) : '?'} at last.`),
    '',
    paint('bold', `${BUYER} takes a copy, and sells it on`),
    ...text(resaleText(resale)),
    '',
    paint('bold', 'Balances in scrip'),
    ...Object.entries({ [SELLER]: seller, [BUYER]: buyer, [THIRD]: third, 'held in escrow': escrow }).map(
      ([name, { balance }]) => `  ${name.padEnd(16)}${count(balance).padStart(8)}`,
    ),
    ...text(
      audit.ok
        ? `Minted ${count(audit.minted)}; debits ${count(audit.debits)} equal credits ${count(audit.credits)} over ${counted(audit.transfers, 'transfer')}.`
        : `The ledger does not add up: ${audit.problems.join('; ')}`,
    ),
  ]
}

function purchaseText({ found, tried, deal, by }: Story['purchases'][number]): string[] {
  const { agreed, disagreed } = tried.agreement
  return [
    `${found.artifact}, ${count(found.price)} scrip ${termsText(found.terms)}.`,
    `- Measured by the platform: ${found.rank.because.map(({ reason }) => reason).join(' ')}`,
    `- Tried on its own mails, without the code: it agreed in ${count(agreed)} of ${count(agreed + disagreed)} decisions.`,
    `- The offer was accepted by ${by}; ${count(deal.paid)} scrip paid so far for ${count(Object.values(deal.delivery?.used ?? {})[0] ?? 0)} uses, ${count(deal.held)} held.`,
  ]
}

function resaleText({ copy, sale, royalty }: Story['resale']): string {
  return (
    `It pays ${count(copy.paid)} scrip for a copy of ${copy.artifact} that may be sold on, and sells a copy of that to ${THIRD} for ${count(sale.paid)}. ` +
    `Of these, ${count(royalty)} go to ${SELLER}, which made it: a royalty of ${ROYALTY_PERCENT} %.`
  )
}

const termsText = ({ fires, per_decision }: ListingTerms): string =>
  per_decision === undefined ? `for ${counted(fires ?? 0, 'use')}` : `as a budget, ${count(per_decision)} per certified decision`
