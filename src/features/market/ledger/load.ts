import { jsonChunks } from '../../../base/json.ts'
import type { NewTransfer, TransferFailure } from '../contract/transfer.ts'
import type { SpendingLimits } from '../contract/account.ts'
import { clientId, digestOfId, endOfAny, idOfCaller, keptId, keptRange, type Named } from './ids.ts'
import { DAY_MS, LedgerDraft, HOUR_MS, type AccountState, type TransferKind, type NewRow, type Sums } from './draft.ts'
import type { LedgerRow } from './present.ts'

export type LedgerSql = Pick<SqlStorage, 'exec'>

type Loading = { ends?: readonly Named[] | undefined; counted?: string | undefined; caller?: string | undefined }

/** Loads all that the transfers concern. `ends`: the pending transfers that they may end. */
export function loadDraft(sql: LedgerSql, transfers: readonly NewTransfer[], options: Loading, now: number): LedgerDraft {
  const draft = new LedgerDraft()
  const pending_ids = [...new Set(transfers.flatMap(({ pending_id }) => pending_id ?? []))]
  const { ends } = options
  const pendings = ends ? rowsOf(sql, ends.flatMap(possibleIds)) : pending_ids.flatMap((id) => rowsNamed(sql, id))
  const ids = idsOf(transfers, pendings, options)
  for (const row of new Map([...pendings, ...rowsOf(sql, ids)].map((one) => [one.id, one])).values()) draft.add(row)
  for (const { id, asked, reason } of allOf<{ id: string; asked: string; reason: string }>(sql, 'SELECT * FROM failed WHERE id IN', ids))
    draft.failed.set(id, { asked: JSON.parse(asked) as NewTransfer, reason: reason as TransferFailure })
  const unknown = ids.filter((id) => !draft.row(id) && !draft.failure(id))
  for (const id of departedAmong(sql, unknown)) draft.departed.add(id)
  const opened = pendings.map(({ id }) => id)
  const ended = allOf<{ pending_id: string; kind: string }>(sql, 'SELECT pending_id, kind FROM transfers WHERE pending_id IN', opened)
  for (const { pending_id, kind } of ended) draft.ends.set(pending_id, kind as TransferKind)
  const sides = [...transfers, ...pendings].flatMap(({ debit, credit }) => [debit, credit])
  for (const account of accountsOf(sql, [...new Set(sides.filter((id) => id !== undefined))])) {
    draft.accounts.set(account.id, account.limits ? { ...account, ...spentBy(sql, account.id, now) } : account)
  }
  return draft
}

/** The ids under which the transfers may be kept. Whose ids they are depends on what they end. */
function idsOf(transfers: readonly NewTransfer[], pendings: readonly NewRow[], caller: Loading): string[] {
  const payers = new Map<string, Set<string>>()
  const note = (id: string, debit: string): void => void payers.set(id, (payers.get(id) ?? new Set()).add(debit))
  for (const row of pendings) note(clientId(row.id, row.debit), row.debit)
  for (const { id, debit } of transfers) if (debit !== undefined) note(id, debit)
  const ids = transfers.flatMap(({ id, debit, pending_id }) => {
    const of = pending_id === undefined ? [] : (payers.get(pending_id) ?? [])
    const any = pending_id === undefined || debit !== undefined ? [] : [endOfAny(id, pending_id)]
    return [
      id,
      idOfCaller(id, caller),
      ...any,
      ...[...of, ...(debit === undefined ? [] : [debit])].map((payer) => keptId({ id, debit: payer })),
    ]
  })
  return [...new Set(ids)]
}

/** The kept ids among these whose transfer or failure has left. */
function departedAmong(sql: LedgerSql, ids: readonly string[]): string[] {
  const by_digest = new Map(ids.map((id) => [digestOfId(id), id]))
  const found = allOf<{ digest: string }>(sql, 'SELECT digest FROM departed_ids WHERE digest IN', [...by_digest.keys()])
  return found.flatMap(({ digest }) => by_digest.get(digest) ?? [])
}

/** Rows from before ids belonged to accounts are kept as they are. */
const possibleIds = (named: Named): string[] => [named.id, keptId(named)]

/** A request names the debit account if several transfers have one id. */
const MOST_NAMED = 100

/** The transfers to which clients gave this id. */
export function rowsNamed(sql: LedgerSql, id: string): LedgerRow[] {
  const [from, to] = keptRange(id)
  const plain = sql.exec<LedgerRow>('SELECT * FROM transfers WHERE id = ?', id).toArray()
  const of_accounts = sql.exec<LedgerRow>('SELECT * FROM transfers WHERE id > ? AND id < ? LIMIT ?', from, to, MOST_NAMED).toArray()
  return [...plain, ...of_accounts].filter((row) => clientId(row.id, row.debit) === id)
}

const rowsOf = (sql: LedgerSql, ids: readonly string[]): NewRow[] =>
  allOf<NewRow & Record<string, SqlStorageValue>>(sql, 'SELECT * FROM transfers WHERE id IN', ids)

export type AccountRow = Sums & { id: string; closed: number; owner: string | null; limits: string | null }

export const accountsOf = (sql: LedgerSql, ids: readonly string[]): AccountState[] =>
  allOf<AccountRow>(sql, 'SELECT * FROM accounts WHERE id IN', ids).map(accountOf)

export const accountOf = ({ closed, limits, ...row }: AccountRow): AccountState => ({
  ...row,
  closed: closed === 1,
  limits: limits === null ? null : (JSON.parse(limits) as SpendingLimits),
  hour: 0,
  day: 0,
})

export function allOf<Row extends Record<string, SqlStorageValue>>(sql: LedgerSql, select: string, ids: readonly string[]): Row[] {
  if (ids.length === 0) return []
  if (ids.length === 1) return sql.exec<Row>(`${select} (?)`, ids[0]).toArray()
  return jsonChunks(ids.map((id) => JSON.stringify(id))).flatMap((chunk) =>
    sql.exec<Row>(`${select} (SELECT value FROM json_each(?))`, chunk).toArray(),
  )
}

/** Debits less what has returned from pending ones. */
function spentBy(sql: LedgerSql, account: string, now: number): { hour: number; day: number } {
  const [before] = sql
    .exec<{ seq: number }>('SELECT seq FROM transfers WHERE at <= ? ORDER BY at DESC, seq DESC LIMIT 1', now - DAY_MS)
    .toArray()
  return sql.exec<{ hour: number; day: number }>(SPENT, account, before?.seq ?? 0, now - HOUR_MS).one()
}

const SPENT = `SELECT coalesce(sum(spent), 0) AS day, coalesce(sum(CASE WHEN at > ?3 THEN spent ELSE 0 END), 0) AS hour FROM (
  SELECT paid.at, CASE WHEN ended.kind IS NULL THEN paid.amount WHEN ended.kind = 'post' THEN ended.amount ELSE 0 END AS spent
  FROM transfers paid LEFT JOIN transfers ended ON ended.pending_id = paid.id
  WHERE paid.debit = ?1 AND paid.seq > ?2 AND paid.kind IN ('single', 'pending'))`
