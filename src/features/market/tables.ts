import { LEDGER_TABLES } from './ledger/tables.ts'
import { DEAL_TABLES } from './deals/tables.ts'
import { CONTRACT_TABLES } from './contracts/tables.ts'
import { VIEW_TABLES } from './views.ts'

/** Steps of the schema of the Ledger's SQLite, by room. Steps are only appended. */
export const TABLES: Readonly<Record<string, readonly string[]>> = {
  ledger: LEDGER_TABLES,
  outbox: [
    'CREATE TABLE outbox (seq INTEGER PRIMARY KEY, topic TEXT NOT NULL, "key" TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (topic, "key"))',
    // A message that fails alone is sent again at `due_at`.
    'ALTER TABLE outbox ADD COLUMN failures INTEGER NOT NULL DEFAULT 0; ALTER TABLE outbox ADD COLUMN due_at INTEGER NOT NULL DEFAULT 0',
    // Its function is gone: D1 has no copy of the accounts.
    "DELETE FROM outbox WHERE topic = 'accounts'",
    'CREATE INDEX outbox_due ON outbox (topic, due_at)',
  ],
  deals: DEAL_TABLES,
  contracts: CONTRACT_TABLES,
  views: VIEW_TABLES,
}
