import type { DealRefused } from '../contract/ledger-api.ts'
import { refuse, type Result } from '../../../base/result.ts'
import type { MarketRoom } from '../room.ts'
import type { DealBook } from './deal-book.ts'
import { DAY_MS } from './earned.ts'

const HOUR_MS = 3_600_000
const MOST_TRIALS = { hour: 5, day: 20 }

type Paid = Result<{ transfer: string | null }, DealRefused>

/** Counts a trial and pays its fee. The same id again costs nothing for a day, and counts once. */
export function payTrial(
  book: DealBook,
  { sql, ledger }: Pick<MarketRoom, 'sql' | 'ledger'>,
  { listing_id, buyer, id, now }: { listing_id: string; buyer: string; id: string; now: number },
): Paid {
  const listing = book.listings.find(listing_id)
  if (!listing) return refuse('not_found', `There is no listing ${listing_id}.`)
  const trials = 'FROM paid_trials WHERE listing_id = ? AND buyer = ?'
  const [known] = sql
    .exec<{ transfer: string | null; at: number }>(`SELECT transfer, at ${trials} AND id = ?`, listing_id, buyer, id)
    .toArray()
  // Before the edge forgets its report: else the same id would run it again.
  if (known && known.at <= now - DAY_MS) return refuse('expired', `The trial ${id} is more than a day old: use another id.`)
  if (known) return { ok: true, transfer: known.transfer }
  if (listing.state !== 'open') return refuse('not_open', `The listing ${listing_id} is ${listing.state}.`)
  if (book.payments.isClosed(listing)) return refuse('not_open', `The account ${listing.seller} is closed.`)
  sql.exec(`DELETE ${trials} AND at <= ?`, listing_id, buyer, now - DAY_MS)
  // A clock that was ahead has timed later ones.
  const counted = `SELECT count(*) AS n ${trials} AND at > ? AND at <= ?`
  const count = (since: number) => sql.exec<{ n: number }>(counted, listing_id, buyer, since, now + DAY_MS).one().n
  if (count(now - HOUR_MS) >= MOST_TRIALS.hour || count(now - DAY_MS) >= MOST_TRIALS.day)
    return refuse('limit', `${buyer} has tried it ${MOST_TRIALS.hour} times in the last hour or ${MOST_TRIALS.day} times in the last day.`)
  const { seller, owner, artifact } = listing
  const fee = listing.terms.trial_fee ?? 0
  // Its own goods cost a seller nothing.
  const transfer = fee > 0 && buyer !== seller ? `trial:${listing_id}:${buyer}:${id}` : null
  if (transfer !== null) {
    const owners = owner === null ? undefined : { [seller]: owner }
    const payment = { id: transfer, debit: buyer, credit: seller, amount: fee, code: 'trial', memo: artifact }
    const [result] = ledger.transfer([payment], { opens: [buyer, seller], owners, caller: buyer, privileged: true }, now)
    if (result?.status === 'exists' || result?.reason === 'id_used_long_ago')
      return refuse('expired', `The trial ${id} is more than a day old: use another id.`)
    if (result?.status === 'failed') return refuse('insufficient_funds', `The fee of ${fee} was not paid by ${buyer}: ${result.reason}.`)
  }
  sql.exec('INSERT INTO paid_trials (listing_id, buyer, id, at, transfer) VALUES (?, ?, ?, ?, ?)', listing_id, buyer, id, now, transfer)
  return { ok: true, transfer }
}
