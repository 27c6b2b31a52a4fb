import { jsonChunks } from '../../../base/json.ts'
import type { LedgerReport, ReportGroup } from '../contract/account.ts'
import type { Transfer } from '../contract/transfer.ts'

const FIELDS = ['seq', 'id', 'debit', 'credit', 'amount', 'kind', 'code', 'memo', 'pending_id', 'expires_at', 'by', 'at'] as const
const COLUMNS = FIELDS.map((field) => `"${field}"`).join(', ')

/** `WHERE true` tells SQLite that ON CONFLICT belongs to the insert. */
const INSERT = `INSERT INTO ledger_transfers (${COLUMNS})
  SELECT ${FIELDS.map((field) => `value ->> '${field}'`).join(', ')} FROM json_each(?1) WHERE true ON CONFLICT DO NOTHING`

/** Copies transfers, which never change. */
export async function copyTransfers(db: D1Database, transfers: readonly Transfer[]): Promise<void> {
  const chunks = jsonChunks(transfers.map((transfer) => JSON.stringify(transfer)))
  if (chunks.length > 0) await db.batch(chunks.map((chunk) => db.prepare(INSERT).bind(chunk)))
}

/** The `seq` up to which D1 has the history; less than before if D1 was restored. */
export async function copiedUpTo(db: D1Database): Promise<number> {
  return (await db.prepare('SELECT max(seq) AS seq FROM ledger_transfers').first<number>('seq')) ?? 0
}

/** The `seq`s of those that D1 has as they are; it is sent those that it lacks. */
export async function copiedAmong(db: D1Database, transfers: readonly Transfer[]): Promise<ReadonlySet<number>> {
  await copyTransfers(db, transfers)
  const select = `SELECT ${COLUMNS} FROM ledger_transfers WHERE seq IN (SELECT value FROM json_each(?1))`
  const found = await db
    .prepare(select)
    .bind(JSON.stringify(transfers.map(({ seq }) => seq)))
    .all<Transfer>()
  const copies = new Map(found.results.map((copy) => [copy.seq, copy]))
  return new Set(transfers.filter((one) => isCopy(one, copies.get(one.seq))).map(({ seq }) => seq))
}

const isCopy = (one: Transfer, copy: Transfer | undefined): boolean => FIELDS.every((field) => one[field] === copy?.[field])

const SIDE = (side: 'debit' | 'credit'): string =>
  `SELECT * FROM (SELECT ${COLUMNS} FROM ledger_transfers WHERE ${side} = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3)`

/** The copied transfers of an account after a `seq`, oldest first. None is missing between them. */
export async function copiedStatement(
  db: D1Database,
  account: string,
  { after, limit }: { after: number; limit: number },
): Promise<Transfer[]> {
  const statement = `${SIDE('debit')} UNION ALL ${SIDE('credit')} ORDER BY seq LIMIT ?3`
  return (await db.prepare(statement).bind(account, after, limit).all<Transfer>()).results
}

const GROUPS: Record<ReportGroup, string> = {
  day: 'substr(at, 1, 10)',
  code: `coalesce(code, '')`,
  counterparty: 'CASE debit WHEN ?1 THEN credit ELSE debit END',
}
/** The newest days, or the largest sums. */
const ORDERS: Record<ReportGroup, string> = { day: '"group" DESC', code: 'debits + credits DESC', counterparty: 'debits + credits DESC' }
const MOST_GROUPS = 1000

type LedgerReportQuery = { account: string; by: ReportGroup; since: string; until: string }

/** Sums of what was paid, as far as it is copied. Money that is only reserved is not in them. */
export async function reportOf(
  db: D1Database,
  { account, by, since, until }: LedgerReportQuery,
): Promise<Pick<LedgerReport, 'items' | 'as_of'>> {
  const moves = (side: 'debit' | 'credit') => `SELECT debit, credit, code, at,
      ${side === 'debit' ? 'amount' : '0'} AS debits, ${side === 'credit' ? 'amount' : '0'} AS credits FROM ledger_transfers
    WHERE ${side} = ?1 AND kind IN ('single', 'post') AND at >= ?2 AND at < ?3
      AND seq >= (SELECT seq FROM ledger_transfers WHERE at >= ?2 ORDER BY at, seq LIMIT 1)`
  const sums = `SELECT ${GROUPS[by]} AS "group", sum(debits) AS debits, sum(credits) AS credits, count(*) AS transfers
    FROM (${moves('debit')} UNION ALL ${moves('credit')}) GROUP BY "group" ORDER BY ${ORDERS[by]} LIMIT ${MOST_GROUPS}`
  const newest = 'SELECT seq, at FROM ledger_transfers ORDER BY seq DESC LIMIT 1'
  const [items, as_of] = await db.batch([db.prepare(sums).bind(account, since, until), db.prepare(newest)])
  return { items: (items?.results ?? []) as LedgerReport['items'], as_of: (as_of?.results[0] ?? null) as LedgerReport['as_of'] }
}
