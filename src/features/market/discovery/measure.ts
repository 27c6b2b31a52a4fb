import { percent } from '../contract/lists.ts'
import { artifactIn, type FoundListing, type Listing, type ProvenFigures } from '../contract/listing.ts'
import { clopperPearsonLow } from '../../../evidence/binomial.ts'
import { readFigures, type Proofs, type ReflexCounts } from '../store/figures.ts'
import { noFigures, unmeasured, writeMeasured, type Unmeasured } from '../store/listings.ts'

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

/** Figures are at most this old where the listings are few. */
const FRESH_MS = 10_000
/** Listings measured for one search. With more, those measured longest ago come first. */
const MOST_MEASURED = 200

/** Measures the open listings whose figures are old. A search does so before it reads. */
export async function measureListings(db: D1Database, now: number): Promise<void> {
  const old = await unmeasured(db, { before: now - FRESH_MS, limit: MOST_MEASURED })
  if (old.length === 0) return
  const proofs = await proofsOf(db, old, now)
  await writeMeasured(
    db,
    old.map(({ listing_id }, index) => ({ listing_id, ...(proofs[index] ?? unproven) })),
    now,
  )
}

/** A listing with what is measured now, as a search finds it. */
export async function measureListing(db: D1Database, listing: Listing, now: number): Promise<FoundListing> {
  const { kind: artifact_kind, id: artifact_id, version } = artifactIn(listing.artifact)
  const [proof = unproven] = await proofsOf(db, [{ artifact_kind, artifact_id, version, hash: listing.hash }], now)
  return { ...listing, ...proof, measured_at: new Date(now).toISOString() }
}

type Goods = Omit<Unmeasured, 'listing_id'>
type Proof = Pick<FoundListing, 'figures' | 'rank'>
const unproven: Proof = { figures: noFigures, rank: rankOf(noFigures) }

async function proofsOf(db: D1Database, goods: readonly Goods[], now: number): Promise<Proof[]> {
  return (await figuresOf(db, goods, now)).map((figures) => ({ figures, rank: rankOf(figures) }))
}

/** The figures of versions, in their order. */
async function figuresOf(db: D1Database, goods: readonly Goods[], now: number): Promise<ProvenFigures[]> {
  const { reflex: reflexes = [], skill: skills = [] } = Object.groupBy(goods, ({ artifact_kind }) => artifact_kind)
  const found = await readFigures(db, { reflexes, skills, now })
  const counts = new Map(found.counts.map((row) => [`${row.id}@${row.version}`, row]))
  const proofs = new Map(found.proofs.map((row) => [`${row.id}@${row.version}`, row]))
  const runs = new Map(found.runs.map((row) => [row.id, row]))
  const tests = new Map(found.tests.map((row) => [`${row.id}@${row.version}#${row.hash}`, row]))
  return goods.map(({ artifact_kind, artifact_id, version, hash }) => {
    const name = `${artifact_id}@${version}`
    if (artifact_kind === 'reflex') return reflexFigures(counts.get(name), proofs.get(name))
    const { scopes = 0, fires = 0, failures = 0 } = runs.get(artifact_id) ?? {}
    const test = tests.get(`${name}#${hash}`)
    return { ...noFigures, scopes, fires, failures, tests: test ? (test.passed === 1 ? 'passed' : 'failed') : null }
  })
}

function reflexFigures(counts: ReflexCounts | undefined, proofs: Proofs | undefined): ProvenFigures {
  const event_types = proofs ? (JSON.parse(proofs.event_types) as string[]) : []
  const agreement = agreementOf(counts, proofs)
  if (!counts) return { ...noFigures, event_types, agreement }
  const { scopes, other_scopes, fires, failures, overruled, acting_runs, model_calls_saved, cost_saved_usd } = counts
  const perThousand = (sum: number) => (acting_runs === 0 ? null : (sum / acting_runs) * 1000)
  return {
    ...noFigures,
    scopes,
    other_scopes,
    event_types,
    fires,
    failures,
    overruled,
    agreement,
    model_calls_saved_per_1000: perThousand(model_calls_saved),
    usd_saved_per_1000: perThousand(cost_saved_usd),
  }
}

/** By the certificates in force. Without any, by all comparisons in shadow mode. */
function agreementOf(counts: ReflexCounts | undefined, proofs: Proofs | undefined): ProvenFigures['agreement'] {
  if (proofs && proofs.bound !== null && proofs.n > 0)
    return { share: proofs.k / proofs.n, lower_bound: proofs.bound, compared: proofs.n, state: 'proven' }
  const { agreed = 0, disagreed = 0 } = counts ?? {}
  const n = agreed + disagreed
  if (n === 0) return null
  return {
    share: agreed / n,
    lower_bound: clopperPearsonLow({ n, k: agreed }),
    compared: n,
    state: proofs && proofs.lapsed > 0 ? 'lapsed' : 'compared',
  }
}
