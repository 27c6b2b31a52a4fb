import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { FoundListing, Listing } from '../contract/listing.ts'
import type { TrialReport } from '../contract/trial.ts'

/**
 * Copies of the listings, which the Ledger owns; a higher `revision` overwrites a lower one. The
 * columns from `measured_at` on are what the platform measured, for search.
 */
export const listings = sqliteTable(
  'listings',
  {
    listing_id: text().primaryKey(),
    revision: integer().notNull(),
    artifact_kind: text({ enum: ['reflex', 'skill'] }).notNull(),
    artifact_id: text().notNull(),
    version: text().notNull(),
    kind: text().notNull(),
    price: integer().notNull(),
    seller: text().notNull(),
    state: text().notNull(),
    created_at: integer().notNull(),
    expires_at: integer(),
    listing: text({ mode: 'json' }).$type<Listing>().notNull(),
    measured_at: integer().notNull().default(0),
    figures: text({ mode: 'json' }).$type<FoundListing['figures']>(),
    score: real().notNull().default(0),
    because: text({ mode: 'json' }).$type<FoundListing['rank']['because']>(),
  },
  (table) => [
    index('listings_measured')
      .on(table.measured_at)
      .where(sql`state = 'open'`),
    index('listings_artifact').on(table.artifact_kind, table.artifact_id, table.version),
    index('listings_seller').on(table.seller, table.listing_id),
  ],
)

/** Trials by the id that the buyer made. `report` is null until it has ended. */
export const trials = sqliteTable(
  'trials',
  {
    listing_id: text().notNull(),
    scope: text().notNull(),
    id: text().notNull(),
    since: integer().notNull(),
    started_at: integer().notNull(),
    report: text({ mode: 'json' }).$type<TrialReport>(),
  },
  (table) => [primaryKey({ columns: [table.listing_id, table.scope, table.id] }), index('trials_age').on(table.started_at)],
)
