import { jsonChunks } from '../base/byte-length.ts'
import type { NewTransfer, TransferFailure } from '../contract/market/transfer.ts'
import type { SpendingLimits } from '../contract/market/account.ts'
import { DAY_MS, Draft, HOUR_MS, type AccountState, type Kind, type NewRow, type Sums } from './draft.ts'

export type Sql = Pick<SqlStorage, 'exec'>

/** Loads all that the transfers concern. */
export function loadDraft(sql: Sql, transfers: readonly NewTransfer[], now: number): Draft {
  const draft = new Draft()
  const ends = transfers.flatMap(({ pending_id }) => pending_id ?? [])
  const ids = [...new Set([...transfers.map(({ id }) => id), ...ends])]
  for (const row of rowsOf(sql, ids)) draft.rows.set(row.id, row)
  for (const failed of allOf<{ id: string; asked: string; reason: string }>(sql, 'SELECT * FROM failed WHERE id IN', ids)) {
    draft.failed.set(failed.id, { asked: JSON.parse(failed.asked) as NewTransfer, reason: failed.reason as TransferFailure })
  }
  const ended = allOf<{ pending_id: string; kind: string }>(sql, 'SELECT pending_id, kind FROM transfers WHERE pending_id IN', ends)
  for (const { pending_id, kind } of ended) draft.ends.set(pending_id, kind as Kind)
  const sides = [...transfers, ...ends.flatMap((id) => draft.rows.get(id) ?? [])].flatMap(({ debit, credit }) => [debit, credit])
  for (const account of accountsOf(sql, [...new Set(sides.filter((id) => id !== undefined))])) {
    draft.accounts.set(account.id, account.limits ? { ...account, ...spentBy(sql, account.id, now) } : account)
  }
  return draft
}

const rowsOf = (sql: Sql, ids: readonly string[]): NewRow[] =>
  allOf<NewRow & Record<string, SqlStorageValue>>(sql, 'SELECT * FROM transfers WHERE id IN', ids)

export type AccountRow = Sums & { id: string; closed: number; owner: string | null; limits: string | null }

export const accountsOf = (sql: Sql, ids: readonly string[]): AccountState[] =>
  allOf<AccountRow>(sql, 'SELECT * FROM accounts WHERE id IN', ids).map(accountOf)

export const accountOf = ({ closed, limits, ...row }: AccountRow): AccountState => ({
  ...row,
  closed: closed === 1,
  limits: limits === null ? null : (JSON.parse(limits) as SpendingLimits),
  hour: 0,
  day: 0,
})

function allOf<Row extends Record<string, SqlStorageValue>>(sql: Sql, select: string, ids: readonly string[]): Row[] {
  if (ids.length === 0) return []
  if (ids.length === 1) return sql.exec<Row>(`${select} (?)`, ids[0]).toArray()
  return jsonChunks(ids.map((id) => JSON.stringify(id))).flatMap((chunk) =>
    sql.exec<Row>(`${select} (SELECT value FROM json_each(?))`, chunk).toArray(),
  )
}

/** Debits less what has returned from pending ones. */
function spentBy(sql: Sql, account: string, now: number): { hour: number; day: number } {
  const [before] = sql
    .exec<{ seq: number }>('SELECT seq FROM transfers WHERE at <= ? ORDER BY at DESC, seq DESC LIMIT 1', now - DAY_MS)
    .toArray()
  return sql.exec<{ hour: number; day: number }>(SPENT, account, before?.seq ?? 0, now - HOUR_MS).one()
}

const SPENT = `SELECT coalesce(sum(spent), 0) AS day, coalesce(sum(CASE WHEN at > ?3 THEN spent ELSE 0 END), 0) AS hour FROM (
  SELECT paid.at, CASE WHEN ended.kind IS NULL THEN paid.amount WHEN ended.kind = 'post' THEN ended.amount ELSE 0 END AS spent
  FROM transfers paid LEFT JOIN transfers ended ON ended.pending_id = paid.id
  WHERE paid.debit = ?1 AND paid.seq > ?2 AND paid.kind IN ('single', 'pending'))`
