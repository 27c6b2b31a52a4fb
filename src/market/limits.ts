export type Limits = Readonly<Record<'listings' | 'offers' | 'offers_on_listing' | 'licences' | 'contracts' | 'news' | 'failures', number>>

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
  /** Transfers of a caller that fail within a day: each failed id is kept for ever. */
  failures: 10_000,
}
