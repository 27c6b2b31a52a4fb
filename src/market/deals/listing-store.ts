import type { ListingRecord } from './records.ts'

type Row = { record: string }
const listingIn = ({ record }: Row): ListingRecord => JSON.parse(record) as ListingRecord

/** The rows of listings. */
export class ListingStore {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
  }

  find(listing_id: string): ListingRecord | null {
    return this.#rows('listing_id = ?', listing_id)[0] ?? null
  }

  write(listing: ListingRecord): void {
    this.#sql.exec(
      `INSERT INTO listings (listing_id, seller, artifact, hash, kind, state, expires_at, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        ON CONFLICT (listing_id) DO UPDATE SET state = ?6, record = ?8`,
      listing.listing_id,
      listing.seller,
      listing.artifact,
      listing.hash,
      listing.kind,
      listing.state,
      listing.expires_at,
      JSON.stringify(listing),
    )
  }

  openBy(seller: string): number {
    return this.#sql.exec<{ n: number }>("SELECT count(*) AS n FROM listings WHERE seller = ? AND state = 'open'", seller).one().n
  }

  /** Open listings of an artifact, in any version. */
  openOf(seller: string, artifact_id: string): ListingRecord[] {
    return this.#rows("seller = ? AND state = 'open' AND substr(artifact, 1, length(?) + 1) = ? || '@'", seller, artifact_id, artifact_id)
  }

  /** The first listing of goods with this hash. */
  first(hash: string): ListingRecord | null {
    return this.#rows('hash = ? ORDER BY seq LIMIT 1', hash)[0] ?? null
  }

  openWith(hash: string): ListingRecord[] {
    return this.#rows("hash = ? AND state = 'open'", hash)
  }

  get due(): number | null {
    const sql = "SELECT min(expires_at) AS at FROM listings WHERE state = 'open' AND expires_at IS NOT NULL"
    return this.#sql.exec<{ at: number | null }>(sql).one().at
  }

  dueBy(at: number): ListingRecord[] {
    return this.#rows("state = 'open' AND expires_at IS NOT NULL AND expires_at <= ?", at)
  }

  #rows(where: string, ...params: SqlStorageValue[]): ListingRecord[] {
    return this.#sql
      .exec<Row>(`SELECT record FROM listings WHERE ${where}`, ...params)
      .toArray()
      .map(listingIn)
  }
}
