/** Steps of the schema of listings and deals. `record`: the rest of a row, as JSON. */
export const DEAL_TABLES = [
  `CREATE TABLE listings (seq INTEGER PRIMARY KEY, listing_id TEXT NOT NULL UNIQUE, seller TEXT NOT NULL, artifact TEXT NOT NULL,
    hash TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, expires_at INTEGER, record TEXT NOT NULL)`,
  `CREATE INDEX listings_open ON listings (seller) WHERE state = 'open'`,
  `CREATE INDEX listings_due ON listings (expires_at) WHERE state = 'open' AND expires_at IS NOT NULL`,
  `CREATE INDEX listings_hash ON listings (hash)`,
  // due_at: when it ends or more of it is earned.
  `CREATE TABLE deals (seq INTEGER PRIMARY KEY, deal_id TEXT NOT NULL UNIQUE, listing_id TEXT NOT NULL, seller TEXT NOT NULL,
    buyer TEXT NOT NULL, artifact TEXT NOT NULL, status TEXT NOT NULL, due_at INTEGER, record TEXT NOT NULL)`,
  `CREATE INDEX deals_listing ON deals (listing_id) WHERE status = 'offered'`,
  `CREATE INDEX deals_offered ON deals (buyer) WHERE status = 'offered'`,
  `CREATE INDEX deals_waiting ON deals (seller) WHERE status = 'offered'`,
  `CREATE INDEX deals_seller ON deals (seller)`,
  `CREATE INDEX deals_buyer ON deals (buyer)`,
  `CREATE INDEX deals_artifact ON deals (artifact) WHERE status IN ('offered', 'accepted')`,
  `CREATE INDEX deals_due ON deals (due_at) WHERE due_at IS NOT NULL`,
  // Licences in use, one row for each pattern of scopes.
  `CREATE TABLE licence_scopes (pattern TEXT NOT NULL, deal_id TEXT NOT NULL, PRIMARY KEY (pattern, deal_id)) WITHOUT ROWID`,
  `CREATE TABLE licence_uses (deal_id TEXT NOT NULL, scope TEXT NOT NULL, fires INTEGER NOT NULL, certified INTEGER NOT NULL,
    PRIMARY KEY (deal_id, scope)) WITHOUT ROWID`,
  // Artifacts without a version, with the deal by which the account owns them.
  `CREATE TABLE bought (artifact_id TEXT PRIMARY KEY, account TEXT NOT NULL, deal_id TEXT NOT NULL) WITHOUT ROWID`,
  `CREATE INDEX bought_account ON bought (account)`,
  `CREATE TABLE paid_trials (listing_id TEXT NOT NULL, buyer TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, transfer TEXT,
    PRIMARY KEY (listing_id, buyer, id)) WITHOUT ROWID`,
  // Artifacts whose ownership an account sold.
  'CREATE TABLE sold (seq INTEGER PRIMARY KEY, account TEXT NOT NULL, artifact_id TEXT NOT NULL)',
  'CREATE INDEX sold_account ON sold (account, artifact_id)',
  'ALTER TABLE licence_uses ADD COLUMN lapses INTEGER NOT NULL DEFAULT 0',
] as const
