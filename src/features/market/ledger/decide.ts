import { ESCROW, GENESIS, MOST_SCRIP, type NewTransfer, type TransferFailure, type TransferResult } from '../contract/transfer.ts'
import { matchesScope } from '../../../contract/principal.ts'
import { LedgerDraft, newAccount, type AccountState, type NewRow } from './draft.ts'
import { clientId, endOfAny, idOfCaller, isReserved, keptId, type Named } from './ids.ts'

export type TransferOptions = {
  /** The key or agent that asks, whose failures of a day are limited; unset: they are not. */
  caller?: string | undefined
  /** The id under which the growth of a day is counted; unset: the caller's name. */
  counted?: string | undefined
  /** Accounts that the edge vouches for: they are opened if they take part for the first time. */
  opens: readonly string[]
  /** Ids of the keys that own the `key:` accounts among them. */
  owners?: Readonly<Record<string, string>> | undefined
  /** The market's own transfers: they may debit escrow, and use ids that clients may not. */
  privileged: boolean
  /** Pending transfers that the caller may end, beside those that it makes itself; unset: all. */
  ends?: readonly Named[] | undefined
  /** Closed accounts may pay what they have. */
  empties?: boolean | undefined
  /** An admin's transfer from genesis. */
  minting?: boolean
}

/** Decides transfers in order, and puts what follows into the draft. */
export function decideAll(draft: LedgerDraft, transfers: readonly NewTransfer[], options: TransferOptions, now: number): TransferResult[] {
  const results: TransferResult[] = []
  for (let from = 0; from < transfers.length;) {
    let to = from
    while (to < transfers.length && transfers[to]?.linked) to += 1
    const chain = transfers.slice(from, to + 1)
    results.push(...(chain.length > 1 || chain[0]?.linked ? decideChain : decideEach)(draft, chain, options, now))
    from = to + 1
  }
  return results
}

const decideEach = (draft: LedgerDraft, transfers: readonly NewTransfer[], options: TransferOptions, now: number): TransferResult[] =>
  transfers.map((asked) => decideOne(draft, asked, options, now))

function decideOne(draft: LedgerDraft, asked: NewTransfer, options: TransferOptions, now: number): TransferResult {
  const { id } = asked
  const identity = identityOf(draft, asked, options)
  // Not kept: else a client could spoil an id that the market will use.
  if (typeof identity === 'string') return { id, status: 'failed', reason: identity }
  const known = knownResult(draft, asked, identity)
  if (known) return known
  const decided = decide(draft, asked, { ...options, ...identity }, now)
  if (typeof decided === 'string') {
    // A scope that D1 does not know yet: the same mint succeeds once it does.
    if (!(options.minting && decided === 'credit_account_not_found')) draft.fail(identity.kept, { asked, reason: decided }, now)
    return { id, status: 'failed', reason: decided }
  }
  for (const side of [decided.debit, decided.credit])
    if (!draft.account(side)) draft.accounts.set(side, newAccount(side, options.owners?.[side] ?? null))
  draft.make(decided)
  return { id, status: 'created', reason: null }
}

/** All of a chain or nothing. A chain that mixes ids that exist with others fails, too. */
function decideChain(draft: LedgerDraft, chain: readonly NewTransfer[], options: TransferOptions, now: number): TransferResult[] {
  const own = new LedgerDraft(draft)
  const identities: ReturnType<typeof identityOf>[] = []
  const results = chain.map((asked) => {
    identities.push(identityOf(own, asked, options))
    return decideOne(own, asked, options, now)
  })
  const is_open = chain.at(-1)?.linked === true
  const failed = results.findIndex(({ status }) => status === 'failed')
  const is_mixed = own.made.length > 0 && identities.some((one) => typeof one === 'object' && draft.row(one.kept))
  if (!is_open && failed === -1 && !is_mixed) {
    draft.merge(own)
    return results
  }
  return chain.map((asked, index) => {
    const { id } = asked
    const result = results[index]
    const identity = identities[index] ?? 'reserved_id'
    if (typeof identity === 'string') return { id, status: 'failed', reason: identity }
    const known = knownResult(draft, asked, identity)
    if (known) return known
    const is_last = is_open && index === chain.length - 1
    const first = index === failed ? result?.reason : null
    const reason = first ?? (is_last ? 'linked_chain_open' : 'linked_transfer_failed')
    draft.fail(identity.kept, { asked, reason }, now)
    return { id, status: 'failed', reason }
  })
}

/** `kept`: the id under which a transfer is kept. `pending`: the one that it ends. */
type Identity = { kept: string; pending: NewRow | null }

/** Ids belong to debit accounts. Why the transfer has none, or may not have it. */
function identityOf(
  draft: LedgerDraft,
  asked: NewTransfer,
  options: TransferOptions,
): Identity | 'reserved_id' | 'pending_transfer_ambiguous' {
  const { id, pending_id } = asked
  if (isReserved(id) && !options.privileged) return 'reserved_id'
  const pending = pending_id === undefined ? null : pendingOf(draft, { ...asked, pending_id }, options)
  if (pending === 'ambiguous') return 'pending_transfer_ambiguous'
  const debit = pending_id === undefined ? asked.debit : pending?.kind === 'pending' ? pending.debit : undefined
  if (isOld(draft, asked, debit)) return { kept: id, pending }
  // An id that ends nothing is the caller's: else anybody could use up the ids of an account.
  const of_caller = idOfCaller(id, options)
  const kept = debit === undefined ? of_caller : keptId({ id, debit })
  const is_known = draft.row(kept) !== undefined || draft.failure(kept) !== undefined
  return { kept: !is_known && pending_id !== undefined && draft.failure(of_caller) ? of_caller : kept, pending }
}

/** True for a transfer that was made, or failed, before ids belonged to accounts. */
function isOld(draft: LedgerDraft, { id, pending_id }: NewTransfer, debit: string | undefined): boolean {
  const row = draft.row(id)
  if (row && row.debit === debit && clientId(row.id, row.debit) === id) return true
  const failed = draft.failure(id)?.asked
  return failed?.id === id && (pending_id === undefined ? failed.debit === debit : failed.pending_id === pending_id)
}

type Ending = NewTransfer & { pending_id: string }

/** The pending transfer that the caller means, of those that it may end. */
function pendingOf(draft: LedgerDraft, { id, pending_id, debit }: Ending, { ends }: TransferOptions): NewRow | 'ambiguous' | null {
  const may_end = ends && new Set(ends.map(keptId))
  const found = draft
    .named(pending_id)
    .filter((row) => debit === undefined || row.debit === debit)
    .filter((row) => !may_end || may_end.has(keptId({ id: pending_id, debit: row.debit })) || draft.isMade(row.id))
  const pendings = found.filter(({ kind }) => kind === 'pending')
  // A repeated request means the one that it has ended.
  const ended = pendings.find((row) => [id, keptId({ id, debit: row.debit })].some((kept) => draft.row(kept)?.pending_id === row.id))
  if (ended) return ended
  return pendings.length > 1 ? 'ambiguous' : (pendings[0] ?? found[0] ?? null)
}

/** The result that the id has already. */
function knownResult(draft: LedgerDraft, asked: NewTransfer, { kept }: Identity): TransferResult | null {
  const { id, pending_id, debit } = asked
  const row = draft.row(kept)
  const failed = draft.failure(kept)
  const hasLeft = draft.hasLeft(kept) || (pending_id !== undefined && debit === undefined && draft.hasLeft(endOfAny(id, pending_id)))
  if (!row && !failed) return hasLeft ? { id, status: 'failed', reason: 'id_used_long_ago' } : null
  const differs = firstDifference(row ? askedOf(row) : failed?.asked, asked)
  if (differs) return { id, status: 'failed', reason: `exists_with_different_${differs}` }
  return row ? { id, status: 'exists', reason: null } : { id, status: 'failed', reason: failed?.reason ?? null }
}

const FIELDS = ['debit', 'credit', 'amount', 'code', 'memo', 'pending', 'timeout_s', 'pending_id', 'post', 'void', 'linked'] as const

/** A flag that is false means the same as none. */
function firstDifference(before: NewTransfer | undefined, asked: NewTransfer): (typeof FIELDS)[number] | undefined {
  const old = before && withoutPayer(before)
  const now = withoutPayer(asked)
  return FIELDS.find((field) => (old?.[field] || undefined) !== (now[field] || undefined))
}

/** The debit account of a pending transfer only identifies the transfer. */
const withoutPayer = (asked: NewTransfer): NewTransfer => (asked.pending_id === undefined ? asked : { ...asked, debit: undefined })

function askedOf(row: NewRow): NewTransfer {
  const { code, memo, kind } = row
  const id = clientId(row.id, row.debit)
  const pending_id = row.pending_id === null ? undefined : clientId(row.pending_id, row.debit)
  const rest = { id, code: code ?? undefined, memo: memo ?? undefined, linked: row.linked === 1 }
  if (kind === 'single' || kind === 'pending') {
    const { debit, credit, amount, timeout_s } = row
    return { ...rest, debit, credit, amount, pending: kind === 'pending', timeout_s: timeout_s ?? undefined }
  }
  const ends = { ...rest, pending_id }
  return kind === 'post' ? { ...ends, post: row.post_all === 1 ? true : row.amount } : { ...ends, void: true }
}

type Deciding = TransferOptions & Identity

function decide(draft: LedgerDraft, asked: NewTransfer, options: Deciding, now: number): NewRow | TransferFailure {
  if (asked.pending_id !== undefined) return decideEnd(draft, asked, options, now)
  const { debit = '', credit = '', amount = 0, code = null, memo = null, pending = false, timeout_s = null } = asked
  if (debit === credit) return 'accounts_must_differ'
  if (debit === GENESIS && !options.minting) return 'genesis_only_mints'
  if ((debit === ESCROW || credit === ESCROW) && !options.privileged) return 'escrow_only_deals'
  const payer = found(draft, debit, options)
  if (!payer) return 'debit_account_not_found'
  const payee = found(draft, credit, options)
  if (!payee) return 'credit_account_not_found'
  if (payer.closed && !options.empties) return 'debit_account_closed'
  if (payee.closed) return 'credit_account_closed'
  const limited = exceededLimit(payer, credit, amount)
  if (limited) return limited
  if (debit !== GENESIS && amount > availableOf(payer)) return 'insufficient_funds'
  if (payer.debits_posted + payer.debits_pending > MOST_SCRIP - amount) return 'exceeds_largest_balance'
  if (payee.credits_posted + payee.credits_pending > MOST_SCRIP - amount) return 'exceeds_largest_balance'
  const expires_at = pending && timeout_s !== null ? now + timeout_s * 1000 : null
  const kind = pending ? 'pending' : 'single'
  return {
    id: options.kept,
    debit,
    credit,
    amount,
    kind,
    code,
    memo,
    pending_id: null,
    timeout_s,
    linked: flag(asked.linked),
    post_all: 0,
    expires_at,
    by: options.privileged ? null : (options.caller ?? null),
    at: now,
  }
}

function decideEnd(
  draft: LedgerDraft,
  asked: NewTransfer,
  { kept: id, pending, privileged, caller }: Deciding,
  now: number,
): NewRow | TransferFailure {
  if (!pending) return 'pending_transfer_not_found'
  const { id: pending_id } = pending
  if (pending.kind !== 'pending') return 'pending_transfer_not_pending'
  if (pending.credit === ESCROW && !privileged) return 'escrow_only_deals'
  // Else the caller of a service could take its money back while it is served.
  if (isReserved(pending_id) && !privileged) return 'reserved_id'
  const end = draft.end(pending_id)
  if (end === 'post') return 'pending_transfer_already_posted'
  if (end === 'void') return 'pending_transfer_already_voided'
  if (end) return 'pending_transfer_timed_out'
  const { post, code = null, memo = null } = asked
  const amount = typeof post === 'number' ? post : pending.amount
  if (amount > pending.amount) return 'exceeds_pending_amount'
  const { debit, credit } = pending
  const rest = {
    code,
    memo,
    pending_id,
    timeout_s: null,
    linked: flag(asked.linked),
    expires_at: null,
    by: privileged ? null : (caller ?? null),
    at: now,
  }
  return { id, debit, credit, amount, kind: post === undefined ? 'void' : 'post', post_all: flag(post === true), ...rest }
}

const flag = (value: boolean | undefined): 0 | 1 => (value ? 1 : 0)

export const availableOf = (account: AccountState): number => account.credits_posted - account.debits_posted - account.debits_pending

/** An account of another owner is as unknown as one that does not exist. */
function found(draft: LedgerDraft, id: string, { opens, owners, empties }: TransferOptions): AccountState | null {
  const account = draft.account(id)
  const owner = owners?.[id]
  if (account?.closed && empties) return account
  if (account) return owner === undefined || account.owner === null || account.owner === owner ? account : null
  return opens.includes(id) ? newAccount(id, owner ?? null) : null
}

function exceededLimit({ limits, hour, day }: AccountState, payee: string, amount: number): TransferFailure | null {
  if (!limits) return null
  const { per_transaction, per_hour, per_day, counterparties } = limits
  if (per_transaction !== null && amount > per_transaction) return 'exceeds_limit_per_transaction'
  if (per_hour !== null && hour + amount > per_hour) return 'exceeds_limit_per_hour'
  if (per_day !== null && day + amount > per_day) return 'exceeds_limit_per_day'
  // The market checks the seller of a deal, whose money goes through escrow.
  return payee !== ESCROW && counterparties && !mayPay(counterparties, payee) ? 'counterparty_not_allowed' : null
}

export const mayPay = (counterparties: readonly string[], payee: string): boolean =>
  counterparties.some((pattern) => matchesScope(pattern, payee))
