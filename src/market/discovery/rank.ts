import type { FoundListing, ProvenFigures } from '../../contract/market/listing.ts'

type Reason = FoundListing['rank']['because'][number]

/** Points that each figure gives at most, and those that failures cost. */
const most = { proven: 40, compared: 20, tested: 20, saved: 30, fires: 15, other_scopes: 15, failed: -30, overruled: -30 } as const
/** Figures that give all points. */
const full = { fires: 10_000, other_scopes: 5 } as const

/** Ranks goods by what the platform measured. Price, age and description give no points. */
export function rankOf(figures: ProvenFigures): FoundListing['rank'] {
  const because = [...agreementReasons(figures), ...useReasons(figures)]
    .map(({ points, reason }) => ({ points: Math.round(points * 10) / 10, reason }))
    .sort((one, other) => other.points - one.points)
  const score = Math.round(because.reduce((sum, { points }) => sum + points, 0) * 10) / 10
  return { score, because: because.length > 0 ? because : [{ points: 0, reason: 'Nothing has been measured yet.' }] }
}

function* agreementReasons({ agreement, tests }: ProvenFigures): Iterable<Reason> {
  if (tests) yield { points: tests === 'passed' ? most.tested : 0, reason: `The last test of its manifest ${tests}.` }
  if (!agreement) return
  const { state, lower_bound, compared } = agreement
  const counted = `in at least ${percent(lower_bound)} of decisions, ${state === 'proven' ? 'certified' : 'estimated'} over ${count(compared)}`
  if (state === 'lapsed') yield { points: 0, reason: `Its certificates lapsed; it agreed ${counted}.` }
  else yield { points: most[state === 'proven' ? 'proven' : 'compared'] * lower_bound, reason: `It agrees with the slow path ${counted}.` }
}

function* useReasons(figures: ProvenFigures): Iterable<Reason> {
  const { fires, failures, overruled, scopes, other_scopes, model_calls_saved_per_1000: calls, usd_saved_per_1000: usd } = figures
  if (calls !== null && calls > 0) {
    const money = usd === null || usd === 0 ? '' : ` and $${usd.toPrecision(3)}`
    const why = calls > 1000 ? ': a turn makes several calls' : ''
    yield { points: most.saved * Math.min(1, calls / 1000), reason: `It saves ${count(calls)} model calls${money} per 1,000 events${why}.` }
  }
  if (fires > 0) {
    const points = most.fires * Math.min(1, Math.log10(1 + fires) / Math.log10(full.fires))
    yield { points, reason: `It acted ${count(fires)} times, in ${scopes} ${scopes === 1 ? 'scope' : 'scopes'}.` }
  }
  if (other_scopes > 0) {
    const points = most.other_scopes * Math.min(1, other_scopes / full.other_scopes)
    yield { points, reason: `${other_scopes} of its scopes do not belong to its owner.` }
  }
  const share = (some: number) => Math.min(1, some / Math.max(1, fires))
  if (failures > 0) yield { points: most.failed * share(failures), reason: `${percent(share(failures))} of its actions failed.` }
  if (overruled > 0)
    yield { points: most.overruled * share(overruled), reason: `${percent(share(overruled))} of its actions were overruled.` }
}

const count = (value: number): string => Math.round(value).toLocaleString('en')
/** Rounded down: a bound is not claimed higher than it is. */
const percent = (share: number): string => `${Math.floor(share * 1000) / 10} %`
