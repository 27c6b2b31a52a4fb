const SUMS = ['debits_pending', 'debits_posted', 'credits_pending', 'credits_posted']

/**
 * The history `transfers` is only appended to, and leaves by `departures.ts` alone. Beside it are
 * the sums of the accounts and the open pending transfers, which can be computed from it, and the
 * ids that failed.
 */
export const LEDGER_TABLES: readonly string[] = [
  `CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    ${SUMS.map((sum) => `${sum} INTEGER NOT NULL DEFAULT 0 CHECK (${sum} BETWEEN 0 AND ${Number.MAX_SAFE_INTEGER})`).join(',\n    ')},
    closed INTEGER NOT NULL DEFAULT 0,
    owner TEXT,
    limits TEXT,
    limits_revision INTEGER NOT NULL DEFAULT -1,
    CHECK (id = 'genesis' OR credits_posted - debits_posted - debits_pending >= 0)
  ) WITHOUT ROWID;
  INSERT INTO accounts (id) VALUES ('genesis'), ('escrow');

  CREATE TABLE transfers (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    debit TEXT NOT NULL,
    credit TEXT NOT NULL CHECK (credit <> debit),
    amount INTEGER NOT NULL CHECK (amount BETWEEN 1 AND ${Number.MAX_SAFE_INTEGER}),
    kind TEXT NOT NULL CHECK (kind IN ('single', 'pending', 'post', 'void', 'timeout')),
    code TEXT,
    memo TEXT,
    pending_id TEXT,
    timeout_s INTEGER,
    linked INTEGER NOT NULL DEFAULT 0,
    post_all INTEGER NOT NULL DEFAULT 0,
    expires_at INTEGER,
    at INTEGER NOT NULL
  );
  CREATE UNIQUE INDEX transfers_ends ON transfers (pending_id) WHERE pending_id IS NOT NULL;
  CREATE INDEX transfers_debit ON transfers (debit);
  CREATE INDEX transfers_credit ON transfers (credit);
  CREATE INDEX transfers_at ON transfers (at);
  CREATE TRIGGER transfers_change BEFORE UPDATE ON transfers BEGIN SELECT raise(ABORT, 'the history is never changed'); END;
  CREATE TRIGGER transfers_delete BEFORE DELETE ON transfers BEGIN SELECT raise(ABORT, 'the history is never deleted'); END;

  CREATE TABLE pendings (id TEXT PRIMARY KEY, expires_at INTEGER) WITHOUT ROWID;
  CREATE INDEX pendings_expiry ON pendings (expires_at) WHERE expires_at IS NOT NULL;

  CREATE TABLE failed (id TEXT PRIMARY KEY, asked TEXT NOT NULL, reason TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;

  CREATE TABLE checkpoint (
    account TEXT PRIMARY KEY,
    ${SUMS.map((sum) => `${sum} INTEGER NOT NULL`).join(', ')}
  ) WITHOUT ROWID;
  CREATE TABLE marks (name TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;`,
  // Ids of a caller that failed in its last day with one.
  'CREATE TABLE failures (caller TEXT PRIMARY KEY, day INTEGER NOT NULL, count INTEGER NOT NULL) WITHOUT ROWID',
  'ALTER TABLE transfers ADD COLUMN "by" TEXT',
  // The bytes that a caller added in its last day with any.
  'CREATE TABLE growth (caller TEXT PRIMARY KEY, day INTEGER NOT NULL, bytes INTEGER NOT NULL) WITHOUT ROWID',
  // The account of a key is found by its id: names repeat.
  'CREATE INDEX accounts_owner ON accounts (owner) WHERE owner IS NOT NULL',
  // The portions that have left the history, the sums that they paid, and the digests of their ids.
  `CREATE TABLE departures (n INTEGER PRIMARY KEY, at INTEGER NOT NULL, transfers INTEGER NOT NULL, scrip TEXT NOT NULL,
    up_to INTEGER NOT NULL, content TEXT NOT NULL, digest TEXT NOT NULL);
  CREATE TABLE departed_sums (account TEXT PRIMARY KEY, debits INTEGER NOT NULL, credits INTEGER NOT NULL,
    n INTEGER NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE departed_ids (digest TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE INDEX failed_at ON failed (at);
  -- The transfers that the open transaction lets leave; empty otherwise.
  CREATE TABLE departing (seq INTEGER PRIMARY KEY);
  DROP TRIGGER transfers_delete;
  CREATE TRIGGER transfers_delete BEFORE DELETE ON transfers
    WHEN OLD.seq NOT IN (SELECT seq FROM departing) OR OLD.id IN (SELECT id FROM pendings)
    BEGIN SELECT raise(ABORT, 'the history is never deleted'); END`,
]
