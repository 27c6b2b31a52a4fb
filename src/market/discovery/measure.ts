import { artifactIn, type FoundListing, type Listing, type ProvenFigures } from '../../contract/market/listing.ts'
import { clopperPearsonLow } from '../../proof/binomial.ts'
import { readFigures, type Proofs, type ReflexCounts } from '../../store/market/figures.ts'
import { noFigures, unmeasured, writeMeasured, type Unmeasured } from '../../store/market/listings.ts'
import { rankOf } from './rank.ts'

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

/** One listing with what is measured now, as a search finds it. */
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
