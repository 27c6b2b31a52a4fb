import type { LedgerDraft, NewRow } from './draft.ts'
import type { LedgerSql } from './load.ts'

/** Writes the changes of a draft, in the open transaction. */
export function writeDraft(sql: LedgerSql, draft: LedgerDraft): void {
  if (draft.made.length > 0) {
    const changed = new Set(draft.made.flatMap(({ debit, credit }) => [debit, credit]))
    for (const id of changed) {
      const account = draft.account(id)
      if (!account) continue
      const { debits_pending, debits_posted, credits_pending, credits_posted, owner } = account
      sql.exec(UPSERT_ACCOUNT, id, debits_pending, debits_posted, credits_pending, credits_posted, owner)
    }
    for (const row of draft.made) writeRow(sql, row)
  }
  for (const { id, asked, reason, at } of draft.newly_failed)
    sql.exec('INSERT INTO failed (id, asked, reason, at) VALUES (?, ?, ?, ?)', id, JSON.stringify(asked), reason, at)
}

const UPSERT_ACCOUNT = `INSERT INTO accounts (id, debits_pending, debits_posted, credits_pending, credits_posted, owner) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
  ON CONFLICT DO UPDATE SET debits_pending = ?2, debits_posted = ?3, credits_pending = ?4, credits_posted = ?5`

const INSERT_ROW = `INSERT INTO transfers
  (id, debit, credit, amount, kind, code, memo, pending_id, timeout_s, linked, post_all, expires_at, "by", at)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

function writeRow(sql: LedgerSql, row: NewRow): void {
  const { id, debit, credit, amount, kind, code, memo, pending_id, timeout_s, linked, post_all, expires_at, by, at } = row
  sql.exec(INSERT_ROW, id, debit, credit, amount, kind, code, memo, pending_id, timeout_s, linked, post_all, expires_at, by, at)
  if (kind === 'pending') sql.exec('INSERT INTO pendings (id, expires_at) VALUES (?, ?)', id, expires_at)
  else if (pending_id !== null) sql.exec('DELETE FROM pendings WHERE id = ?', pending_id)
}
