export type Limits = Readonly<
  Record<'listings' | 'offers' | 'offers_on_listing' | 'licences' | 'contracts' | 'news' | 'failures' | 'bytes', number>
>

/**
 * The size of a listing, a deal or a contract with its later states, in the Ledger and D1, beside
 * the transfers of its maker.
 */
export const RECORD_BYTES = 10_000

export const LIMITS: Limits = {
  /** Open listings of a seller. */
  listings: 1000,
  /** Open offers of a buyer. */
  offers: 1000,
  offers_on_listing: 100,
  /** Licences in use of a scope. */
  licences: 1000,
  /** Contracts of a proposer that are proposed or accepted. */
  contracts: 1000,
  /** Events that wait for a scope whose inbox is full. Its view has the state without them. */
  news: 1000,
  /** Transfers of a caller that fail within a day: each failed id is kept. */
  failures: 10_000,
  /** The bytes that one key or agent adds to the Ledger and to D1 together within a day. */
  bytes: 10_000_000,
}

/** The limits, with the megabytes a day that the deployment sets; invalid ones count as unset. */
export function limitsOf({ REFLEX_LEDGER_MB_PER_DAY: text }: { REFLEX_LEDGER_MB_PER_DAY?: string }): Limits {
  const megabytes = Number(text)
  return text !== undefined && Number.isFinite(megabytes) && megabytes > 0 ? { ...LIMITS, bytes: megabytes * 1_000_000 } : LIMITS
}

const LEAST_DAYS = 31
const DEFAULT_DAYS = 400
const MOST_DAYS = 36_500

/**
 * The days for which the Ledger keeps its history. A D1 that is restored to an earlier time must
 * still have what has left. An invalid value is null, and lets nothing leave.
 */
export function ledgerDays({ REFLEX_LEDGER_RETENTION_DAYS: text = '' }: { REFLEX_LEDGER_RETENTION_DAYS?: string }): number | null {
  const days = text === '' ? DEFAULT_DAYS : Number(text)
  return days >= LEAST_DAYS && days <= MOST_DAYS ? days : null
}
