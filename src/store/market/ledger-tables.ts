import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** Copies of the Ledger's history and accounts, for reports. */
export const ledgerTransfers = sqliteTable(
  'ledger_transfers',
  {
    seq: integer().primaryKey(),
    id: text().notNull(),
    debit: text().notNull(),
    credit: text().notNull(),
    amount: integer().notNull(),
    kind: text({ enum: ['single', 'pending', 'post', 'void', 'timeout'] }).notNull(),
    code: text(),
    memo: text(),
    pending_id: text(),
    expires_at: text(),
    at: text().notNull(),
  },
  (table) => [index('ledger_transfers_debit').on(table.debit), index('ledger_transfers_credit').on(table.credit)],
)

/** `revision`: the `seq` of the newest transfer when the account was read. */
export const ledgerAccounts = sqliteTable('ledger_accounts', {
  id: text().primaryKey(),
  balance: integer().notNull(),
  available: integer().notNull(),
  debits_pending: integer().notNull(),
  debits_posted: integer().notNull(),
  credits_pending: integer().notNull(),
  credits_posted: integer().notNull(),
  closed: integer({ mode: 'boolean' }).notNull(),
  revision: integer().notNull(),
})
