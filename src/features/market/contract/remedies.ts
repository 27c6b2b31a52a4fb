import type { TransferFailure } from './transfer.ts'

const OPENS =
  'An account opens with its first transfer, once its scope or key exists: reflex scope list, reflex keys list. A new scope is known after a second.'
const LIMITED = 'The setting market of the paying scope limits this: reflex scope show SCOPE.'
const ENDED = 'A pending transfer ends once: reflex ledger statement ACCOUNT shows how.'

const remedies: Partial<Record<TransferFailure, string>> = {
  debit_account_not_found: OPENS,
  credit_account_not_found: OPENS,
  insufficient_funds: 'What is pending is not available: reflex ledger account ACCOUNT shows both.',
  exceeds_limit_per_transaction: LIMITED,
  exceeds_limit_per_hour: LIMITED,
  exceeds_limit_per_day: LIMITED,
  counterparty_not_allowed: LIMITED,
  genesis_only_mints: 'Only reflex ledger mint pays from genesis.',
  escrow_only_deals: 'Only deals of the market pay to escrow and from it.',
  id_used_long_ago: 'An earlier transfer had the id, and has left the ledger: reflex ledger statement ACCOUNT shows it.',
  reserved_id: 'Ids that begin like this belong to the market: use another.',
  pending_transfer_not_found: 'It takes the id of a transfer that was made with --pending: reflex ledger statement ACCOUNT.',
  pending_transfer_ambiguous: 'Several pending transfers have this id: --debit ACCOUNT says which one is meant.',
  pending_transfer_not_pending: 'It takes the id of a transfer that was made with --pending: reflex ledger statement ACCOUNT.',
  pending_transfer_already_posted: ENDED,
  pending_transfer_already_voided: ENDED,
  pending_transfer_timed_out: ENDED,
}

/** The remedies for a transfer that failed. `is_own_id`: its id was given, and not made for it. */
export function remediesFor(reason: TransferFailure | null, { is_own_id }: { is_own_id: boolean }): string[] {
  if (reason?.startsWith('exists_with_different_')) return ['The id was used for another transfer: use another id.']
  const remedy = reason === null ? undefined : remedies[reason]
  return [...(remedy ? [remedy] : []), ...(is_own_id ? ['An id that failed stays failed: use a new one for the next attempt.'] : [])]
}
