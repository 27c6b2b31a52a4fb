import { jsonChunks } from '../../base/byte-length.ts'
import type { Account } from '../../contract/market/account.ts'
import type { Transfer } from '../../contract/market/transfer.ts'

const TRANSFER_FIELDS = ['seq', 'id', 'debit', 'credit', 'amount', 'kind', 'code', 'memo', 'pending_id', 'expires_at', 'at']
const ACCOUNT_FIELDS = ['id', 'balance', 'available', 'debits_pending', 'debits_posted', 'credits_pending', 'credits_posted', 'closed']
const values = (fields: readonly string[]): string => fields.map((field) => `value ->> '${field}'`).join(', ')

/** `WHERE true` tells SQLite that ON CONFLICT belongs to the insert. */
const INSERT_TRANSFERS = `INSERT INTO ledger_transfers (${TRANSFER_FIELDS.join(', ')})
  SELECT ${values(TRANSFER_FIELDS)} FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING`

const UPSERT_ACCOUNTS = `INSERT INTO ledger_accounts (${ACCOUNT_FIELDS.join(', ')}, revision)
  SELECT ${values(ACCOUNT_FIELDS)}, ?2 FROM json_each(?1) WHERE true
  ON CONFLICT DO UPDATE SET ${ACCOUNT_FIELDS.slice(1)
    .map((field) => `${field} = excluded.${field}`)
    .join(', ')}, revision = excluded.revision WHERE excluded.revision >= revision`

/** Copies transfers, which never change, and accounts, of which the newest copy stays. */
export async function copyLedger(
  db: D1Database,
  transfers: readonly Transfer[],
  accounts: readonly Account[],
  revision: number,
): Promise<void> {
  const written = [
    ...jsonChunks(transfers.map((transfer) => JSON.stringify(transfer))).map((chunk) => db.prepare(INSERT_TRANSFERS).bind(chunk)),
    ...jsonChunks(accounts.map((account) => JSON.stringify(account))).map((chunk) => db.prepare(UPSERT_ACCOUNTS).bind(chunk, revision)),
  ]
  if (written.length > 0) await db.batch(written)
}
