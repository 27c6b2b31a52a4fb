import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** The Ledger's history up to its last copy, for statements and reports. `at` grows with `seq`. */
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
    by: text(),
    at: text().notNull(),
  },
  (table) => [
    index('ledger_transfers_debit').on(table.debit),
    index('ledger_transfers_credit').on(table.credit),
    index('ledger_transfers_at').on(table.at),
  ],
)
