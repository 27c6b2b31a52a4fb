/** Steps of the schema of contracts. `record`: the rest of a row, as JSON. */
export const CONTRACT_TABLES = [
  `CREATE TABLE contracts (seq INTEGER PRIMARY KEY, contract_id TEXT NOT NULL UNIQUE, proposer TEXT NOT NULL, counterparty TEXT NOT NULL,
    status TEXT NOT NULL, record TEXT NOT NULL)`,
  `CREATE INDEX contracts_proposer ON contracts (proposer) WHERE status IN ('proposed', 'accepted')`,
  `CREATE INDEX contracts_counterparty ON contracts (counterparty) WHERE status IN ('proposed', 'accepted')`,
  `CREATE TABLE invocations (seq INTEGER PRIMARY KEY, contract_id TEXT NOT NULL, invocation_id TEXT NOT NULL, transfer TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL, trace_id TEXT, at INTEGER NOT NULL, UNIQUE (contract_id, invocation_id))`,
  `CREATE INDEX contracts_by_proposer ON contracts (proposer, seq)`,
  `CREATE INDEX contracts_by_counterparty ON contracts (counterparty, seq)`,
] as const
