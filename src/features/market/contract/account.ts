import { z } from 'zod'
import { spendingLimits } from './setting.ts'

const sum = z.int().min(0)

export { spendingLimits }
export type SpendingLimits = z.infer<typeof spendingLimits>

export const account = z
  .object({
    id: z.string(),
    balance: z.int().describe('Posted credits less posted debits.'),
    available: z.int().describe('The balance less what is reserved by pending debits.'),
    debits_pending: sum,
    debits_posted: sum,
    credits_pending: sum,
    credits_posted: sum,
    closed: z.boolean().describe('A closed account takes part in no new transfer.'),
    limits: spendingLimits.nullable(),
  })
  .meta({ id: 'Account' })
export type Account = z.infer<typeof account>

export const reportGroups = ['day', 'code', 'counterparty'] as const
export type ReportGroup = (typeof reportGroups)[number]

/** Sums of D1's copy of the history. */
export const ledgerReport = z
  .object({
    account: z.string(),
    by: z.enum(reportGroups),
    since: z.iso.datetime(),
    until: z.iso.datetime(),
    items: z.array(
      z.object({
        group: z.string().describe('The day in UTC, the code (empty without one) or the other account.'),
        debits: sum.describe('What the account paid.'),
        credits: sum.describe('What it was paid.'),
        transfers: sum,
      }),
    ),
    as_of: z
      .object({ seq: z.int(), at: z.iso.datetime() })
      .nullable()
      .describe('The newest transfer of the ledger that is in the copy: later ones are not in the sums.'),
  })
  .meta({ id: 'LedgerReport' })
export type LedgerReport = z.infer<typeof ledgerReport>

/** Recomputed from history. */
export const ledgerAudit = z
  .object({
    ok: z.boolean().describe('True if the history adds up, and equals the balances in use.'),
    minted: z.int(),
    debits: z.int(),
    credits: z.int(),
    accounts: z.int(),
    open_pendings: z.int(),
    transfers: z.int().describe('Of all time.'),
    checkpoint: z
      .object({ transfers: z.int(), at: z.iso.datetime(), digest: z.string() })
      .nullable()
      .describe('How many transfers have left the ledger for D1, and the digest of them all, as of the last of them that left.'),
    problems: z.array(z.string()).describe('What does not add up, in sentences.'),
  })
  .meta({ id: 'LedgerAudit' })
export type LedgerAudit = z.infer<typeof ledgerAudit>
