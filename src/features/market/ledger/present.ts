import { iso, isoOrNull } from '../../../base/time.ts'
import type { Account } from '../contract/account.ts'
import type { Transfer } from '../contract/transfer.ts'
import { availableOf } from './decide.ts'
import type { AccountState, NewRow } from './draft.ts'
import { clientId } from './ids.ts'

export type LedgerRow = NewRow & { seq: number }

export function presented(account: AccountState): Account {
  const { id, debits_pending, debits_posted, credits_pending, credits_posted, closed, limits } = account
  const balance = credits_posted - debits_posted
  return { id, balance, available: availableOf(account), debits_pending, debits_posted, credits_pending, credits_posted, closed, limits }
}

export function presentedRow({ seq, id, debit, credit, amount, code, memo, kind, pending_id, expires_at, by, at }: LedgerRow): Transfer {
  return {
    seq,
    id: clientId(id, debit),
    debit,
    credit,
    amount,
    code,
    memo,
    kind,
    pending_id: pending_id === null ? null : clientId(pending_id, debit),
    expires_at: isoOrNull(expires_at),
    by,
    at: iso(at),
  }
}
