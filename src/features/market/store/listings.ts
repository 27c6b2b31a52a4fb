import { and, eq, or, sql, type SQL } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/d1'
import { jsonChunks } from '../../../base/json.ts'
import type { listingSorts, FoundListing, Listing, ProvenFigures } from '../contract/listing.ts'
import { listings } from './tables.ts'

/** A listing as of a change of the Ledger. `revision` grows with each change of the listing. */
export type ListingCopy = { listing: Listing; revision: number }

/**
 * Writes copies from the outbox of the Ledger. Stale and repeated ones change nothing. Whoever
 * finds a listing finds its version sealed: one transaction writes both.
 */
export async function writeListings(db: D1Database, copies: readonly ListingCopy[]): Promise<void> {
  const chunks = jsonChunks(copies.map((copy) => JSON.stringify(copy)))
  if (chunks.length > 0) await db.batch([UPSERT, SEAL].flatMap((sql) => chunks.map((chunk) => db.prepare(sql).bind(chunk))))
}

const MS = (time: string) => `CAST(round(unixepoch(${time}, 'subsec') * 1000) AS INTEGER)`
const ARTIFACT = `l->>'artifact'`
/** The kind, id and version in `reflex:ID@VERSION`. */
const NAMED = `substr(${ARTIFACT}, 1, instr(${ARTIFACT}, ':') - 1),
    substr(${ARTIFACT}, instr(${ARTIFACT}, ':') + 1, instr(${ARTIFACT}, '@') - instr(${ARTIFACT}, ':') - 1),
    substr(${ARTIFACT}, instr(${ARTIFACT}, '@') + 1)`
const UPSERT = `INSERT INTO listings
    (listing_id, revision, artifact_kind, artifact_id, version, kind, price, seller, state, created_at, expires_at, listing)
  SELECT l->>'listing_id', revision, ${NAMED}, l->>'kind', l->>'price', l->>'seller', l->>'state',
    ${MS(`l->>'created_at'`)}, ${MS(`l->>'expires_at'`)}, l
  FROM (SELECT value->'listing' AS l, value->>'revision' AS revision FROM json_each(?1)) WHERE true
  ON CONFLICT (listing_id) DO UPDATE SET revision = excluded.revision, state = excluded.state, price = excluded.price,
    expires_at = excluded.expires_at, listing = excluded.listing
  WHERE excluded.revision > listings.revision`

const SEAL = `UPDATE artifact_versions SET sealed = 1, revision = (SELECT max(revision) + 1 FROM artifact_versions)
  WHERE sealed = 0 AND (kind, id, version) IN (SELECT ${NAMED} FROM (SELECT value->'listing' AS l FROM json_each(?1)))`

type ListingSort = (typeof listingSorts)[number]

/** The sort key of each order, rising; ties are in the order of ids. */
const places: Record<ListingSort, SQL> = {
  rank: sql`-${listings.score}`,
  price: sql`${listings.price}`,
  newest: sql`-${listings.created_at}`,
  agreement: sql`-coalesce(${listings.figures} ->> '$.agreement.lower_bound', 0)`,
  saved: sql`-coalesce(${listings.figures} ->> 'usd_saved_per_1000', 0)`,
  fires: sql`-coalesce(${listings.figures} ->> 'fires', 0)`,
}

type ListingPlace = { place: number; id: string }
type ListingQuery = {
  q?: string | undefined
  kind?: Listing['kind'] | undefined
  type?: string | undefined
  tool?: string | undefined
  artifact?: string | undefined
  seller?: string | undefined
  max_price?: number | undefined
  sort: ListingSort
  after?: ListingPlace | undefined
  limit: number
  now: number
}

/** Open listings that match; one more than `limit` if there are more. */
export async function searchListings(db: D1Database, query: ListingQuery): Promise<{ items: FoundListing[]; next: ListingPlace | null }> {
  const place = places[query.sort]
  const { after, limit } = query
  const rows = await drizzle(db)
    .select({
      listing: listings.listing,
      figures: listings.figures,
      score: listings.score,
      because: listings.because,
      at: listings.measured_at,
      place,
    })
    .from(listings)
    .where(and(matches(query), after && sql`(${place}, ${listings.listing_id}) > (${after.place}, ${after.id})`))
    .orderBy(place, listings.listing_id)
    .limit(limit + 1)
  const shown = rows.slice(0, limit)
  const last = rows.length > limit ? shown.at(-1) : undefined
  const items = shown.map(({ listing, figures, score, because, at }) => ({
    ...listing,
    figures: figures ?? noFigures,
    rank: { score, because: because ?? [] },
    measured_at: new Date(at).toISOString(),
  }))
  return { items, next: last ? { place: Number(last.place), id: last.listing.listing_id } : null }
}

export const noFigures: ProvenFigures = {
  scopes: 0,
  other_scopes: 0,
  event_types: [],
  fires: 0,
  failures: 0,
  overruled: 0,
  agreement: null,
  tests: null,
  model_calls_saved_per_1000: null,
  usd_saved_per_1000: null,
}

const field = (name: string): SQL => sql`(${listings.listing} ->> ${sql.raw(`'${name}'`)})`

function matches({ q = '', kind, type, tool, artifact, seller, max_price, now }: ListingQuery): SQL | undefined {
  const text = sql`lower(${listings.artifact_id} || ' ' || ${field('description')} || ' ' || ${field('event_types')} || ' ' || ${field('tools')} ||
    ' ' || coalesce((${listings.figures} ->> 'event_types'), ''))`
  const words = q
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
  const among = (value: string, ...lists: SQL[]) =>
    or(...lists.map((list) => sql`EXISTS (SELECT 1 FROM json_each(${list}) WHERE value = ${value})`))
  return and(
    eq(listings.state, 'open'),
    sql`coalesce(${listings.expires_at}, ${now} + 1) > ${now}`,
    kind && eq(listings.kind, kind),
    seller === undefined ? undefined : eq(listings.seller, seller),
    artifact === undefined ? undefined : sql`${field('artifact')} = ${artifact}`,
    max_price === undefined ? undefined : sql`${listings.price} <= ${max_price}`,
    tool === undefined ? undefined : among(tool, field('tools')),
    type === undefined ? undefined : among(type, field('event_types'), sql`coalesce(${listings.figures} ->> 'event_types', '[]')`),
    ...words.map((word) => sql`instr(${text}, ${word}) > 0`),
  )
}

export type Unmeasured = { listing_id: string; artifact_kind: 'reflex' | 'skill'; artifact_id: string; version: string; hash: string }

/** Open listings that were last measured before a time, the longest ago first. */
export const unmeasured = (db: D1Database, { before, limit }: { before: number; limit: number }): Promise<Unmeasured[]> =>
  drizzle(db)
    .select({
      listing_id: listings.listing_id,
      artifact_kind: listings.artifact_kind,
      artifact_id: listings.artifact_id,
      version: listings.version,
      hash: sql<string>`${field('hash')}`,
    })
    .from(listings)
    .where(sql`${listings.state} = 'open' AND ${listings.measured_at} < ${before}`)
    .orderBy(listings.measured_at)
    .limit(limit)

type Measured = { listing_id: string; figures: ProvenFigures; rank: FoundListing['rank'] }

export async function writeMeasured(db: D1Database, measured: readonly Measured[], now: number): Promise<void> {
  const chunks = jsonChunks(measured.map((one) => JSON.stringify(one)))
  if (chunks.length > 0) await db.batch(chunks.map((chunk) => db.prepare(WRITE_MEASURED).bind(chunk, now)))
}

const WRITE_MEASURED = `UPDATE listings SET measured_at = ?2, figures = m.value->'figures', score = m.value->>'$.rank.score',
    because = m.value->'$.rank.because'
  FROM json_each(?1) AS m WHERE listing_id = m.value->>'listing_id' AND measured_at <= ?2`
