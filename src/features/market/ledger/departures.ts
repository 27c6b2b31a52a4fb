import { hexHash } from '../../../base/hash.ts'
import type { LedgerAudit } from '../contract/account.ts'
import type { NewTransfer, Transfer } from '../contract/transfer.ts'
import { clientId, endOfAny, digestOfId, keptId } from './ids.ts'
import { allOf, type LedgerSql } from './load.ts'
import { movesOf, SUMS } from './moves.ts'
import { presentedRow, type LedgerRow } from './present.ts'

/** Finds the ids of transfers that something unfinished refers to. */
export type InUse = (ids: readonly string[]) => ReadonlySet<string>
/**
 * A portion that may leave: single transfers, and pending ones with their ends. `next`: the `seq`
 * after which the next portion begins.
 */
export type Departing = { groups: Transfer[][]; next: number; is_last: boolean }

/**
 * A portion that has left. `transfers` and `scrip` are sums over all portions so far: how many have
 * left, and what they paid. `content` is the digest of this portion's transfers, and `digest`
 * covers this row and the one before: whoever has noted it knows all that has left.
 */
type Departure = { n: number; at: number; transfers: number; scrip: string; up_to: number; content: string; digest: string }
/** The sums that an account paid and received by what had left, as of the portion `n`. */
type DepartedSum = { account: string; debits: number; credits: number; n: number; digest: string }

const digestOf = (parts: readonly (string | number)[]): string => hexHash(JSON.stringify(parts))

const digestOfPortion = (before: string, { n, at, transfers, scrip, up_to, content }: Omit<Departure, 'digest'>): string =>
  digestOf([before, n, at, transfers, scrip, up_to, content])

const digestOfSum = (portion: string, { account, debits, credits }: Omit<DepartedSum, 'digest' | 'n'>): string =>
  digestOf([portion, account, debits, credits])

type DepartureQuery = { before: number; after: number; upTo: number; limit: number; isInUse: InUse }

/**
 * Finds what of a page is older than `before` and may leave. A pending transfer leaves with its
 * end, so that the rest adds up. The newest one stays: its `seq` must not be used again.
 */
export function departing(sql: LedgerSql, { before, after, upTo, limit, isInUse }: DepartureQuery): Departing {
  const page = sql.exec<LedgerRow>('SELECT * FROM transfers WHERE seq > ? ORDER BY seq LIMIT ?', after, limit).toArray()
  const newest = sql.exec<{ seq: number }>('SELECT coalesce(max(seq), 0) AS seq FROM transfers').one().seq
  const mayLeave = ({ at, seq }: LedgerRow): boolean => at < before && seq <= upTo && seq < newest
  const old = page.filter(mayLeave)
  const pendings = old.flatMap(({ id, kind }) => (kind === 'pending' ? [id] : []))
  const ends = allOf<LedgerRow>(sql, 'SELECT * FROM transfers WHERE pending_id IN', pendings).filter(mayLeave)
  const endOf = new Map(ends.map((end) => [end.pending_id, end]))
  const groups = old.flatMap((row) => {
    if (row.kind === 'single') return [[row]]
    // Nothing ends but what was pending.
    const end = endOf.get(row.id)
    return end ? [[row, end]] : []
  })
  const in_use = isInUse(groups.flat().map(({ id }) => id))
  const leaving = groups.filter((group) => !group.some(({ id }) => in_use.has(id)))
  const last = page.at(-1)
  const is_last = last === undefined || page.length < limit || last.at >= before
  return { groups: leaving.map((group) => group.map(presentedRow)), next: last?.seq ?? after, is_last }
}

/** Deletes transfers. Their sums, the digests of their ids and a digest of them all stay. */
export function depart(sql: LedgerSql, { seqs, now }: { seqs: readonly number[]; now: number }): void {
  if (seqs.length === 0) return
  sql.exec('INSERT INTO departing SELECT value FROM json_each(?)', JSON.stringify(seqs))
  const rows = sql.exec<LedgerRow>('SELECT * FROM transfers WHERE seq IN (SELECT seq FROM departing) ORDER BY seq').toArray()
  keepWakingSums(sql)
  keepSums(sql, rows, addPortion(sql, rows, now))
  keepIds(
    sql,
    rows.flatMap(({ id, debit, kind, pending_id }) => {
      if (kind === 'timeout') return []
      const own = clientId(id, debit)
      return [keptId({ id: own, debit }), ...(pending_id === null ? [] : [endOfAny(own, clientId(pending_id, debit))])]
    }),
  )
  sql.exec('DELETE FROM transfers WHERE seq IN (SELECT seq FROM departing)')
  sql.exec('DELETE FROM departing')
}

/** The sums for an object that wakes are those up to a mark: later ones that leave are added. */
function keepWakingSums(sql: LedgerSql): void {
  const moves = movesOf(`seq IN (SELECT seq FROM departing) AND seq > (SELECT seq FROM marks WHERE name = 'checkpoint')`)
  const fields = ['debits_pending', 'debits_posted', 'credits_pending', 'credits_posted']
  sql.exec(`INSERT INTO checkpoint SELECT account, ${SUMS} FROM (${moves}) WHERE true GROUP BY account
    ON CONFLICT (account) DO UPDATE SET ${fields.map((field) => `${field} = ${field} + excluded.${field}`).join(', ')}`)
}

function addPortion(sql: LedgerSql, rows: readonly LedgerRow[], at: number): Departure {
  const before = newest(sql)
  const paid = rows.filter(isPaid).reduce((sum, { amount }) => sum + BigInt(amount), BigInt(before?.scrip ?? 0))
  const portion = {
    n: (before?.n ?? 0) + 1,
    at,
    transfers: (before?.transfers ?? 0) + rows.length,
    scrip: String(paid),
    up_to: Math.max(before?.up_to ?? 0, ...rows.map(({ seq }) => seq)),
    content: digestOf(rows.map((row) => JSON.stringify(presentedRow(row)))),
  }
  const departure = { ...portion, digest: digestOfPortion(before?.digest ?? '', portion) }
  const { n, transfers, scrip, up_to, content, digest } = departure
  sql.exec(
    'INSERT INTO departures (n, at, transfers, scrip, up_to, content, digest) VALUES (?, ?, ?, ?, ?, ?, ?)',
    n,
    at,
    transfers,
    scrip,
    up_to,
    content,
    digest,
  )
  return departure
}

const newest = (sql: LedgerSql): Departure | undefined =>
  sql.exec<Departure>('SELECT * FROM departures ORDER BY n DESC LIMIT 1').toArray()[0]

const isPaid = ({ kind }: LedgerRow): boolean => kind === 'single' || kind === 'post'

function keepSums(sql: LedgerSql, rows: readonly LedgerRow[], { n, digest }: Departure): void {
  const changed = [...new Set(rows.filter(isPaid).flatMap(({ debit, credit }) => [debit, credit]))]
  const known = allOf<DepartedSum>(sql, 'SELECT * FROM departed_sums WHERE account IN', changed)
  const sums = new Map(changed.map((account) => [account, { account, debits: 0, credits: 0 }]))
  for (const { account, debits, credits } of known) sums.set(account, { account, debits, credits })
  for (const { debit, credit, amount } of rows.filter(isPaid)) {
    const payer = sums.get(debit)
    const payee = sums.get(credit)
    if (payer) payer.debits += amount
    if (payee) payee.credits += amount
  }
  for (const sum of sums.values()) {
    const { account, debits, credits } = sum
    const insert = 'INSERT OR REPLACE INTO departed_sums (account, debits, credits, n, digest) VALUES (?, ?, ?, ?, ?)'
    sql.exec(insert, account, debits, credits, n, digestOfSum(digest, sum))
  }
}

const keepIds = (sql: LedgerSql, ids: readonly string[]): void =>
  void sql.exec('INSERT OR IGNORE INTO departed_ids SELECT value FROM json_each(?)', JSON.stringify(ids.map(digestOfId)))

/** Replaces old ids that failed by their digests. Returns how many these were. */
export function forgetFailed(sql: LedgerSql, { before, limit }: { before: number; limit: number }): number {
  const old = sql
    .exec<{ id: string; asked: string }>('SELECT id, asked FROM failed WHERE at < ? ORDER BY at LIMIT ?', before, limit)
    .toArray()
  if (old.length === 0) return 0
  const ids = old.map(({ id, asked }) => {
    const { debit, pending_id } = JSON.parse(asked) as NewTransfer
    return debit === undefined || pending_id !== undefined || id.includes('\n') ? id : keptId({ id, debit })
  })
  keepIds(sql, ids)
  sql.exec('DELETE FROM failed WHERE id IN (SELECT value FROM json_each(?))', JSON.stringify(old.map(({ id }) => id)))
  return old.length
}

/** The checkpoint of what has left, and what of it was altered, in sentences. */
export function auditDepartures(sql: LedgerSql): { checkpoint: LedgerAudit['checkpoint']; problems: string[] } {
  const problems: string[] = []
  const digests: string[] = ['']
  let last: Departure | null = null
  for (const departure of sql.exec<Departure>('SELECT * FROM departures ORDER BY n')) {
    const { n, digest } = departure
    if (digest !== digestOfPortion(digests.at(-1) ?? '', departure))
      problems.push(`The checkpoint ${n} was altered, or one before it is missing.`)
    digests[n] = digest
    last = departure
  }
  let debits = 0n
  let credits = 0n
  for (const sum of sql.exec<DepartedSum>('SELECT * FROM departed_sums')) {
    debits += BigInt(sum.debits)
    credits += BigInt(sum.credits)
    if (sum.digest !== digestOfSum(digests[sum.n] ?? '', sum)) problems.push(`${sum.account}: its sums at the checkpoint were altered.`)
  }
  const scrip = BigInt(last?.scrip ?? 0)
  if (debits !== scrip || credits !== scrip)
    problems.push(`At the checkpoint, debits are ${debits} and credits ${credits}, and ${scrip} was paid.`)
  return { checkpoint: last && { transfers: last.transfers, at: new Date(last.at).toISOString(), digest: last.digest }, problems }
}
