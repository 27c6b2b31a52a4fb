import type { LedgerAudit } from '../contract/account.ts'
import { GENESIS } from '../contract/transfer.ts'
import { auditDepartures } from './departures.ts'
import type { Sums } from './draft.ts'
import type { LedgerSql } from './load.ts'
import { movesOf, SUMS } from './moves.ts'

type AccountSums = Sums & { account: string }

/** A waking object adds up this many transfers at most: then the checkpoint follows. */
const CHECKPOINT_EVERY = 10_000

/** Sums of the accounts by the history after `seq`, and by what is known of the rest. */
const HISTORY = `SELECT account, ${SUMS} FROM (${movesOf('seq > ?1')}
  UNION ALL SELECT account, debits_pending, debits_posted, credits_pending, credits_posted FROM checkpoint WHERE ?1 > 0
  UNION ALL SELECT account, 0, debits, 0, credits FROM departed_sums WHERE ?1 = 0)
  GROUP BY account`

/** Accounts whose sums in use differ from the history, in sentences. */
function differences(sql: LedgerSql, sums: readonly AccountSums[]): string[] {
  const computed = new Map(sums.map((sum) => [sum.account, sum]))
  const in_use = sql.exec<Sums & { id: string }>('SELECT id, debits_pending, debits_posted, credits_pending, credits_posted FROM accounts')
  const found: string[] = []
  for (const account of in_use) {
    const { id } = account
    const sum = computed.get(id)
    computed.delete(id)
    for (const field of ['debits_pending', 'debits_posted', 'credits_pending', 'credits_posted'] as const) {
      const expected = sum?.[field] ?? 0
      if (account[field] !== expected) found.push(`${id}: ${field} is ${account[field]}, and ${expected} by the history.`)
    }
    if (id !== GENESIS && account.credits_posted - account.debits_posted - account.debits_pending < 0) found.push(`${id} is overdrawn.`)
  }
  return [...found, ...[...computed.keys()].map((id) => `${id} has transfers and no account.`)]
}

const historySums = (sql: LedgerSql, after: number): AccountSums[] => sql.exec<AccountSums>(HISTORY, after).toArray()

/**
 * Compares the sums in use with the history since the checkpoint, for an object that wakes. Moves
 * the checkpoint if it has fallen behind.
 */
export function checkSinceCheckpoint(sql: LedgerSql, every = CHECKPOINT_EVERY): string[] {
  const [mark] = sql.exec<{ seq: number }>(`SELECT seq FROM marks WHERE name = 'checkpoint'`).toArray()
  const after = mark?.seq ?? 0
  const sums = historySums(sql, after)
  const found = differences(sql, sums)
  const newest = sql.exec<{ seq: number }>('SELECT coalesce(max(seq), 0) AS seq FROM transfers').one().seq
  if (found.length === 0 && newest - after >= every) {
    for (const { account, debits_pending, debits_posted, credits_pending, credits_posted } of sums)
      sql.exec(
        'INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?, ?, ?)',
        account,
        debits_pending,
        debits_posted,
        credits_pending,
        credits_posted,
      )
    sql.exec(`INSERT OR REPLACE INTO marks (name, seq) VALUES ('checkpoint', ?)`, newest)
  }
  return found
}

/** Recomputes all from the history, and from the checkpoint of what has left it. */
export function auditOf(sql: LedgerSql): LedgerAudit {
  const sums = historySums(sql, 0)
  const { checkpoint, problems: altered } = auditDepartures(sql)
  const problems = [...altered, ...differences(sql, sums)]
  const total = (field: keyof Sums): number => sums.reduce((sum, account) => sum + account[field], 0)
  const debits = total('debits_posted')
  const credits = total('credits_posted')
  if (debits !== credits) problems.push(`Posted debits are ${debits}, and credits ${credits}.`)
  if (total('debits_pending') !== total('credits_pending')) problems.push('Pending debits and credits differ.')
  const { open, listed, unlisted } = sql.exec<{ open: number; listed: number; unlisted: number }>(OPEN).one()
  if (listed !== open || unlisted > 0) problems.push(`${open} transfers are pending by the history, and ${listed} are kept as pending.`)
  const genesis = sums.find(({ account }) => account === GENESIS)
  const { kept, accounts } = sql
    .exec<{ kept: number; accounts: number }>(
      'SELECT (SELECT count(*) FROM transfers) AS kept, (SELECT count(*) FROM accounts) AS accounts',
    )
    .one()
  const minted = genesis?.debits_posted ?? 0
  const transfers = kept + (checkpoint?.transfers ?? 0)
  return { ok: problems.length === 0, minted, debits, credits, accounts, open_pendings: open, transfers, checkpoint, problems }
}

const OPEN = `WITH open AS (SELECT id FROM transfers opened WHERE kind = 'pending'
    AND NOT EXISTS (SELECT 1 FROM transfers ended WHERE ended.pending_id = opened.id))
  SELECT (SELECT count(*) FROM open) AS open, (SELECT count(*) FROM pendings) AS listed,
    (SELECT count(*) FROM pendings WHERE id NOT IN (SELECT id FROM open)) AS unlisted`
