import { DEAL_TABLES } from './deals/tables.ts'

/** Steps of the schema of the Ledger's SQLite, by room. Steps are only appended. */
export const TABLES: Readonly<Record<string, readonly string[]>> = {
  outbox: ['CREATE TABLE outbox (topic TEXT NOT NULL, "key" TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (topic, "key")) WITHOUT ROWID'],
  deals: DEAL_TABLES,
}
