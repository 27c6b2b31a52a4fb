import { z } from 'zod'

/** The largest amount, and the largest sum of an account: 2^53 - 1 loses no unit as a number. */
export const MOST_SCRIP = Number.MAX_SAFE_INTEGER
/** Maximum number of transfers in a request, which one transaction writes. */
export const MOST_TRANSFERS = 1000
/** Maximum duration of a pending transfer in seconds: a year. */
const LONGEST_S = 31_536_000

/** Mints and burns scrip; the only account whose balance may be negative. */
export const GENESIS = 'genesis'
/** Holds what buyers have paid and sellers have not yet earned. */
export const ESCROW = 'escrow'

export const accountId = z
  .string()
  .max(256)
  .regex(/^(?:genesis|escrow|(?:scope|key):.+)$/, 'an account is scope:NAME, key:NAME, genesis or escrow')
  .describe('`scope:NAME`, `key:NAME`, `key:ID`, `genesis` or `escrow`.')

export const amount = z.int().min(1).max(MOST_SCRIP).describe('A positive integer, in scrip.')
/** The beginning of the ids that the tools of agents give to what they make. */
export const AGENT_IDS = 'agent:'

/** A client could take the id of an agent's payment, or hide its own from the payer's events. */
export const clientId = (most: number) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((id) => !id.startsWith(AGENT_IDS), `ids that begin with ${AGENT_IDS} are for the tools of agents`)
    .describe('Made by the client.')
const transferId = clientId(200).describe('Made by the client. An id of an account that pays has one outcome, for ever.')

export const newTransfer = z
  .strictObject({
    id: transferId,
    debit: accountId
      .optional()
      .describe('The account that pays. With `pending_id`, it says whose pending transfer is meant, if several have the id.'),
    credit: accountId.optional().describe('The account that is paid. Not given with `pending_id`.'),
    amount: amount.optional().describe('In scrip. Not given with `pending_id`.'),
    code: z.string().min(1).max(64).optional().describe('The kind of payment, for reports.'),
    memo: z.string().max(500).optional(),
    pending: z.boolean().optional().describe('Reserves the amount until it is posted, voided, or times out.'),
    timeout_s: z.int().min(1).max(LONGEST_S).optional().describe('With `pending`: it ends as timed out after this time.'),
    pending_id: z.string().min(1).max(200).optional().describe('The pending transfer that this one ends.'),
    post: z
      .union([z.literal(true), amount])
      .optional()
      .describe('Pays all of the pending amount, or a part; the rest returns.'),
    void: z.literal(true).optional().describe('Returns the pending amount.'),
    linked: z.boolean().optional().describe('Succeeds or fails together with the next transfer of the request.'),
  })
  .meta({ id: 'NewTransfer' })
export type NewTransfer = z.infer<typeof newTransfer>

const only = (given: Record<string, unknown>, fields: readonly string[]): boolean => fields.every((field) => given[field] === undefined)

/** Why the fields do not make a transfer; null if they do. */
export function misshapen(asked: NewTransfer): string | null {
  const { pending_id, post, void: voids } = asked
  if (pending_id !== undefined) {
    if (!only(asked, ['credit', 'amount', 'pending', 'timeout_s'])) return 'a transfer with pending_id has only post or void'
    return (post === undefined) === (voids === undefined) ? 'give one of post and void' : null
  }
  if (!only(asked, ['post', 'void'])) return 'post and void need pending_id'
  if (asked.debit === undefined || asked.credit === undefined || asked.amount === undefined) return 'give debit, credit and amount'
  return asked.timeout_s !== undefined && !asked.pending ? 'timeout_s needs pending' : null
}

/** `exists_with_different_FIELD` names the first field that differs. */
const transferFailures = [
  'debit_account_not_found',
  'credit_account_not_found',
  'debit_account_closed',
  'credit_account_closed',
  'accounts_must_differ',
  'insufficient_funds',
  'exceeds_largest_balance',
  'exceeds_limit_per_transaction',
  'exceeds_limit_per_hour',
  'exceeds_limit_per_day',
  'counterparty_not_allowed',
  'genesis_only_mints',
  'escrow_only_deals',
  'reserved_id',
  'id_used_long_ago',
  'too_many_failures',
  'too_much_of_a_day',
  'pending_transfer_not_found',
  'pending_transfer_ambiguous',
  'pending_transfer_not_pending',
  'pending_transfer_already_posted',
  'pending_transfer_already_voided',
  'pending_transfer_timed_out',
  'exceeds_pending_amount',
  'linked_transfer_failed',
  'linked_chain_open',
  'exists_with_different_debit',
  'exists_with_different_credit',
  'exists_with_different_amount',
  'exists_with_different_code',
  'exists_with_different_memo',
  'exists_with_different_pending',
  'exists_with_different_timeout_s',
  'exists_with_different_pending_id',
  'exists_with_different_post',
  'exists_with_different_void',
  'exists_with_different_linked',
] as const
export type TransferFailure = (typeof transferFailures)[number]

export const transferResult = z
  .object({
    id: z.string(),
    status: z.enum(['created', 'exists', 'failed']).describe('`exists`: the same transfer was made before.'),
    reason: z.enum(transferFailures).nullable().describe('Why it failed. An id that failed stays failed.'),
  })
  .meta({ id: 'TransferResult' })
export type TransferResult = z.infer<typeof transferResult>

/** A transfer of the history. Times in ms. */
export const transfer = z
  .object({
    seq: z.int().describe('Its place in the history of the ledger.'),
    id: z.string(),
    debit: z.string(),
    credit: z.string(),
    amount: z.int(),
    code: z.string().nullable(),
    memo: z.string().nullable(),
    kind: z.enum(['single', 'pending', 'post', 'void', 'timeout']),
    pending_id: z.string().nullable(),
    expires_at: z.iso.datetime().nullable(),
    by: z.string().nullable().describe('The key or agent that made it; null for what the market does.'),
    at: z.iso.datetime(),
  })
  .meta({ id: 'Transfer' })
export type Transfer = z.infer<typeof transfer>

export const newMint = z.strictObject({ id: transferId, to: accountId, amount, memo: z.string().max(500).optional() })
export type NewMint = z.infer<typeof newMint>
