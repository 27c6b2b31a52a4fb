import { byteLength } from '../../../base/json.ts'
import type { Account, LedgerAudit, SpendingLimits } from '../contract/account.ts'
import type { AccountKey, KeyAccount, LedgerPage, PageAsked } from '../contract/ledger-api.ts'
import { isKeyId } from '../../../contract/principal.ts'
import { GENESIS, type NewMint, type NewTransfer, type Transfer, type TransferResult } from '../contract/transfer.ts'
import { decideAll, mayPay, type TransferOptions } from './decide.ts'
import { depart, departing, forgetFailed, type Departing, type InUse, auditDepartures } from './departures.ts'
import { DAY_MS, type LedgerDraft, type NewRow, type Sums } from './draft.ts'
import { accountOf, accountsOf, loadDraft, rowsNamed, type AccountRow, type LedgerSql } from './load.ts'
import { presented, presentedRow, type LedgerRow } from './present.ts'
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
function checkSinceCheckpoint(sql: LedgerSql, every = CHECKPOINT_EVERY): string[] {
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
function auditOf(sql: LedgerSql): LedgerAudit {
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

/** Writes the changes of a draft, in the open transaction. */
function writeDraft(sql: LedgerSql, draft: LedgerDraft): void {
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

export type { TransferOptions } from './decide.ts'
/** A pending transfer that timed out, at its expiry. */
export type TimedOut = { id: string; at: number }

type MintedBy = Pick<TransferOptions, 'opens' | 'owners' | 'caller' | 'counted'> & { privileged?: boolean }

/** Double entry. All methods that write run in the caller's transaction; `now` in ms. */
export class Ledger {
  readonly #sql: LedgerSql
  /** Limits of a caller in a day. */
  readonly #most: { failures: number; bytes: number }
  /** Reasons to trust the sums no more. Nothing is transferred then. */
  #problems: readonly string[] = []

  constructor(sql: LedgerSql, most: { failures: number; bytes: number }) {
    this.#sql = sql
    this.#most = most
  }

  /** Compares the sums with the history, once the object wakes. */
  check(every?: number): readonly string[] {
    this.#problems = checkSinceCheckpoint(this.#sql, every)
    return this.#problems
  }

  transfer(transfers: readonly NewTransfer[], options: TransferOptions, now: number): TransferResult[] {
    if (this.#problems.length > 0) throw new Error(`The ledger does not add up: ${this.#problems[0]}`)
    const draft = loadDraft(this.#sql, transfers, options, now)
    const results = decideAll(draft, transfers, options, now)
    if (!this.#mayFail(draft.newly_failed.length, options.caller, now))
      return transfers.map(({ id }) => ({ id, status: 'failed', reason: 'too_many_failures' }))
    if (!this.mayGrow(bytesOf(draft), options.counted ?? options.caller, now))
      return transfers.map(({ id }) => ({ id, status: 'failed', reason: 'too_much_of_a_day' }))
    writeDraft(this.#sql, draft)
    return results
  }

  /**
   * Counts what a caller adds to the Ledger and D1. False, and not counted, if that is more than
   * one caller may add in a day. The market itself has no caller.
   */
  mayGrow(bytes: number, caller: string | undefined, now: number): boolean {
    if (bytes === 0 || caller === undefined) return true
    const day = Math.floor(now / DAY_MS)
    const [before] = this.#sql.exec<{ bytes: number }>('SELECT bytes FROM growth WHERE caller = ? AND day = ?', caller, day).toArray()
    const grown = (before?.bytes ?? 0) + bytes
    if (grown > this.#most.bytes) return false
    this.#sql.exec('DELETE FROM growth WHERE day < ?', day)
    this.#sql.exec('INSERT OR REPLACE INTO growth (caller, day, bytes) VALUES (?, ?, ?)', caller, day, grown)
    return true
  }

  mint({ id, to, amount, memo }: NewMint, { opens, owners, caller, counted, privileged = false }: MintedBy, now: number): TransferResult {
    const asked = { id, debit: GENESIS, credit: to, amount, code: 'mint', memo }
    const [result] = this.transfer([asked], { opens, owners, caller, counted, privileged, minting: true }, now)
    if (!result) throw new Error('A transfer has no result')
    return result
  }

  account(id: string): Account | null {
    const [account] = accountsOf(this.#sql, [id])
    return account ? presented(account) : null
  }

  /** The id of the key that a `key:` account belongs to. */
  ownerOf(id: string): string | null {
    return accountsOf(this.#sql, [id])[0]?.owner ?? null
  }

  /**
   * The account of a key: the one that it owns, else the one of its name, if no other key has it,
   * else the one of its id. Names repeat, and the name of a key may look like the id of another.
   */
  accountOfKey({ id, name, opens }: AccountKey): KeyAccount {
    const [own] = this.#sql.exec<{ id: string }>('SELECT id FROM accounts WHERE owner = ? ORDER BY id LIMIT 1', id).toArray()
    const of_name = `key:${name}`
    const is_free = !isKeyId(name) && this.ownerOf(of_name) === null
    const account = own?.id ?? (is_free ? of_name : `key:${id}`)
    if (opens && !own) this.#sql.exec(OPEN_FOR, account, id)
    return { account, owner: this.ownerOf(account) }
  }

  /** False if the limits of the account do not allow it to pay this one. */
  mayPay(id: string, payee: string): boolean {
    const counterparties = accountsOf(this.#sql, [id])[0]?.limits?.counterparties
    return !counterparties || mayPay(counterparties, payee)
  }

  accounts({ after, limit }: PageAsked): LedgerPage<Account> {
    const rows = this.#sql.exec<AccountRow>('SELECT * FROM accounts WHERE id > ? ORDER BY id LIMIT ?', after ?? '', limit + 1).toArray()
    const items = rows.slice(0, limit).map((row) => presented(accountOf(row)))
    return { items, next: rows.length > limit ? (items.at(-1)?.id ?? null) : null }
  }

  statement(id: string, { after, limit }: PageAsked): LedgerPage<Transfer> {
    return this.#page(
      `SELECT * FROM (SELECT * FROM transfers WHERE debit = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3)
      UNION ALL SELECT * FROM (SELECT * FROM transfers WHERE credit = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3) ORDER BY seq LIMIT ?3`,
      limit,
      [id, Number(after ?? 0), limit + 1],
    )
  }

  /** The history of all accounts, after a `seq`. */
  history({ after, limit }: PageAsked): LedgerPage<Transfer> {
    return this.#page('SELECT * FROM transfers WHERE seq > ?1 ORDER BY seq LIMIT ?2', limit, [Number(after ?? 0), limit + 1])
  }

  /** The transfers to which clients gave these ids: at most some of each account. */
  transfers(ids: readonly string[]): Transfer[] {
    return ids.flatMap((id) => rowsNamed(this.#sql, id).map(presentedRow))
  }

  audit(): LedgerAudit {
    return auditOf(this.#sql)
  }

  /** Opens the account, if it is new: its limits must hold for its first transfer, too. */
  setLimits(account: string, limits: SpendingLimits | null, revision: number): void {
    this.#sql.exec(
      `INSERT INTO accounts (id, limits, limits_revision) VALUES (?1, ?2, ?3)
      ON CONFLICT DO UPDATE SET limits = ?2, limits_revision = ?3 WHERE limits_revision < ?3`,
      account,
      limits && JSON.stringify(limits),
      revision,
    )
  }

  /** Closes the account of an owner, whatever its id; the one with this id, if nobody owns it. */
  closeAccount(id: string, owner: string | null = null): void {
    this.#sql.exec('UPDATE accounts SET closed = 1 WHERE owner = ?2 OR (id = ?1 AND (?2 IS NULL OR owner IS NULL))', id, owner)
  }

  /** The time of the next timeout. */
  get due(): number | null {
    return this.#sql.exec<{ at: number | null }>('SELECT min(expires_at) AS at FROM pendings WHERE expires_at IS NOT NULL').one().at
  }

  /** The time of the newest transfer. */
  get newestAt(): number {
    return this.#sql.exec<{ at: number }>('SELECT coalesce(max(at), 0) AS at FROM transfers').one().at
  }

  /** The `seq` of the newest transfer. */
  get newest(): number {
    return this.#sql.exec<{ seq: number }>('SELECT coalesce(max(seq), 0) AS seq FROM transfers').one().seq
  }

  /** The `seq` up to which a reader of the history has come. */
  mark(name: string): number {
    return this.#sql.exec<{ seq: number }>('SELECT coalesce(max(seq), 0) AS seq FROM marks WHERE name = ?', name).one().seq
  }

  setMark(name: string, seq: number): void {
    this.#sql.exec('INSERT OR REPLACE INTO marks (name, seq) VALUES (?, ?)', name, seq)
  }

  /** True if it is time for a pass, in which old history leaves: one a day, if there is any. */
  isDeparting(before: number, now: number): boolean {
    if (now - this.mark(LAST_PASS) < DAY_MS) return false
    const { at } = this.#sql.exec<{ at: number | null }>(OLDEST).one()
    return at !== null && at < before
  }

  /** Finds what may leave next, in a page of the history. */
  departing(asked: { before: number; limit: number; isInUse: InUse }): Departing {
    return departing(this.#sql, { ...asked, after: this.mark(PASS), upTo: Math.min(this.mark('copied'), this.mark('news')) })
  }

  /** Lets transfers leave, which D1 has. Returns true at the end of the pass. */
  depart({ groups, next, is_last }: Departing, { before, limit, now }: { before: number; limit: number; now: number }): boolean {
    depart(this.#sql, { seqs: groups.flat().map(({ seq }) => seq), now })
    const is_over = forgetFailed(this.#sql, { before, limit }) < limit && is_last
    this.setMark(PASS, is_over ? 0 : next)
    if (is_over) this.setMark(LAST_PASS, now)
    return is_over
  }

  /** The newest transfer that has left: statements from here on may lack older ones. */
  get departedUpTo(): number {
    return this.#sql.exec<{ seq: number }>('SELECT coalesce(max(up_to), 0) AS seq FROM departures').one().seq
  }

  /** Ends the pending transfers whose time has come by `now`, in order of their expiry. */
  expire(now: number): TimedOut[] {
    const due = this.#sql
      .exec<LedgerRow>(
        `SELECT transfers.* FROM pendings JOIN transfers ON transfers.id = pendings.id
        WHERE pendings.expires_at <= ? ORDER BY pendings.expires_at, transfers.seq`,
        now,
      )
      .toArray()
    if (due.length === 0) return []
    const draft = loadDraft(
      this.#sql,
      due.map(({ id }) => ({ id: `timeout:${id}`, pending_id: id, void: true })),
      { ends: due },
      now,
    )
    for (const { id, debit, credit, amount, expires_at } of due) {
      const rest = { code: null, memo: null, timeout_s: null, expires_at: null, linked: 0, post_all: 0, by: null } as const
      draft.make({ id: `timeout:${id}`, debit, credit, amount, kind: 'timeout', pending_id: id, at: expires_at ?? now, ...rest })
    }
    writeDraft(this.#sql, draft)
    return due.map(({ id, expires_at }) => ({ id, at: expires_at ?? now }))
  }

  /** Counts ids that fail. False if the caller has had too many of them in this day. */
  #mayFail(count: number, caller: string | undefined, now: number): boolean {
    if (count === 0 || caller === undefined) return true
    const day = Math.floor(now / DAY_MS)
    const [before] = this.#sql.exec<{ count: number }>('SELECT count FROM failures WHERE caller = ? AND day = ?', caller, day).toArray()
    const failures = (before?.count ?? 0) + count
    if (failures > this.#most.failures) return false
    this.#sql.exec('INSERT OR REPLACE INTO failures (caller, day, count) VALUES (?, ?, ?)', caller, day, failures)
    return true
  }

  #page(select: string, limit: number, bound: SqlStorageValue[]): LedgerPage<Transfer> {
    const rows = this.#sql.exec<LedgerRow>(select, ...bound).toArray()
    const items = rows.slice(0, limit).map(presentedRow)
    return { items, next: rows.length > limit ? String(items.at(-1)?.seq) : null }
  }
}

/** The `seq` up to which a pass has come, and the time of the last one. */
const PASS = 'departing'
const LAST_PASS = 'last pass'
const OLDEST = `SELECT min(at) AS at FROM (SELECT * FROM (SELECT at FROM transfers ORDER BY seq LIMIT 1)
  UNION ALL SELECT min(at) FROM failed)`

const OPEN_FOR = `INSERT INTO accounts (id, owner) VALUES (?1, ?2)
  ON CONFLICT DO UPDATE SET owner = ?2 WHERE owner IS NULL`

/** A row with its place in the indexes, without its texts: measured, in the Ledger and D1. */
const ROW_BYTES = 500
/** The texts are in both, and ids and accounts in indexes, too. */
const COPIES = { text: 2, indexed: 4 }

function bytesOf({ made, newly_failed }: LedgerDraft): number {
  const rows = made.map(({ id, pending_id, debit, credit, code, memo }) => {
    const indexed = `${id}${pending_id ?? ''}${debit}${credit}`
    return ROW_BYTES + COPIES.indexed * byteLength(indexed) + COPIES.text * byteLength(`${code ?? ''}${memo ?? ''}`)
  })
  const failed = newly_failed.map(({ asked }) => ROW_BYTES + byteLength(JSON.stringify(asked)))
  return [...rows, ...failed].reduce((sum, bytes) => sum + bytes, 0)
}
