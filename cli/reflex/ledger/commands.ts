import { randomUUID } from 'node:crypto'
import { Option, type Command } from 'commander'
import { reportGroups, type LedgerReport } from '../../../src/features/market/contract/account.ts'
import type { TransferResult, TransferFailure } from '../../../src/features/market/contract/transfer.ts'
import { audit, find, list, statement } from '../../../src/features/market/operations/ledger.ts'
import { UsageError } from '../../lib/cli-error.ts'
import { given } from '../market/given.ts'
import { addOperation } from '../operation.ts'
import { route } from '../pages.ts'
import { handler, type ExitOutcome, type Session } from '../session.ts'
import { fields, table, type Column } from '../table.ts'
import { timeOption, wholeNumber } from '../values.ts'

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
function remediesFor(reason: TransferFailure | null, { is_own_id }: { is_own_id: boolean }): string[] {
  if (reason?.startsWith('exists_with_different_')) return ['The id was used for another transfer: use another id.']
  const remedy = reason === null ? undefined : remedies[reason]
  return [...(remedy ? [remedy] : []), ...(is_own_id ? ['An id that failed stays failed: use a new one for the next attempt.'] : [])]
}

const HELP = `
Accounts are scope:NAME, key:NAME (key:ID where several keys have the name), genesis and escrow.

Examples:
  reflex ledger mint scope:shop/berlin 1000
  reflex ledger pay scope:shop/berlin scope:shop/paris 5 --memo "for the reflex"
  reflex ledger pay scope:shop/berlin scope:shop/paris 5 --pending --timeout 3600 --id order-17
  reflex ledger post order-17 --amount 3
  reflex ledger statement scope:shop/berlin`

const sumColumns: Column<LedgerReport['items'][number]>[] = [
  { title: 'PAID', of: ({ debits }) => debits },
  { title: 'RECEIVED', of: ({ credits }) => credits },
  { title: 'TRANSFERS', of: ({ transfers }) => transfers },
  { title: 'OF', of: ({ group }) => group },
]

export function addLedger(program: Command): void {
  const ledger = program.command('ledger').description('Accounts and transfers of scrip').addHelpText('after', HELP)
  addReading(ledger)
  addPaying(ledger)
}

function addReading(ledger: Command): void {
  for (const op of [list, find, statement]) addOperation(ledger, op)
  ledger
    .command('report <id>')
    .description('Sum the payments of an account, as D1 has them')
    .addOption(new Option('--by <group>', 'what the sums are grouped by').choices(reportGroups).default('day'))
    .addOption(timeOption('since', 'paid at or after a time'))
    .addOption(timeOption('until', 'paid before a time'))
    .action(handler(report))
  addOperation(ledger, audit)
}

type Range = { by: string; since?: string; until?: string }

async function report({ api, print, signal }: Session, id: string, { by, since, until }: Range): Promise<void> {
  const found = await api().json<LedgerReport>(route(['ledger', 'accounts', id, 'report'], { by, since, until }), { signal })
  const { items, as_of } = found
  const line = as_of === null ? 'D1 has no transfer yet.' : `As of transfer ${as_of.seq}, at ${as_of.at}.`
  print.result(found, (paint) => [...table(items, sumColumns, { paint }), line])
}

type Payment = { id?: string; memo?: string; code?: string; pending?: true; timeout?: number }
type TransferEnding = { id?: string; amount?: number; debit?: string }

function addPaying(ledger: Command): void {
  const own = '--id <id>'
  const whose = ['--debit <account>', 'the account that pays it, if several have this id'] as const
  const once = 'your id of the transfer: repeating it pays no second time'
  const transfer = ['ledger', 'transfers']
  ledger
    .command('mint')
    .argument('<account>', 'scope:NAME, key:NAME or key:ID')
    .argument('<amount>', 'in scrip', wholeNumber)
    .description('Make new scrip, as an admin')
    .option(own, once)
    .option('--memo <text>', 'a note')
    .action(
      handler((session, to: string, amount: number, { id, memo }: Payment) => paid(session, ['ledger', 'mint'], { id, to, amount, memo })),
    )
  ledger
    .command('pay')
    .argument('<from>', 'the account that pays')
    .argument('<to>', 'the account that is paid')
    .argument('<amount>', 'in scrip', wholeNumber)
    .description('Transfer scrip')
    .option(own, once)
    .option('--memo <text>', 'a note')
    .option('--code <code>', 'the kind of payment, for reports')
    .option('--pending', 'only reserve the amount, until it is posted or voided')
    .addOption(new Option('--timeout <seconds>', 'with --pending: it is voided after this time').argParser(wholeNumber))
    .action(
      handler((session, debit: string, credit: string, amount: number, options: Payment) => {
        const { id, memo, code, pending, timeout: timeout_s } = options
        if (timeout_s !== undefined && !pending) throw new UsageError('--timeout is for --pending: other transfers are paid at once.')
        return paid(session, transfer, { id, debit, credit, amount, memo, code, pending, timeout_s })
      }),
    )
  ledger
    .command('post <pending>')
    .description('Pay a pending transfer')
    .option(own, once)
    .option(...whose)
    .addOption(new Option('--amount <scrip>', 'a part; the rest returns').argParser(wholeNumber))
    .action(
      handler((session, pending_id: string, { id, amount, debit }: TransferEnding) =>
        paid(session, transfer, { id, pending_id, debit, post: amount ?? true }),
      ),
    )
  ledger
    .command('void <pending>')
    .description('Return a pending transfer')
    .option(own, once)
    .option(...whose)
    .action(
      handler((session, pending_id: string, { id, debit }: TransferEnding) =>
        paid(session, transfer, { id, pending_id, debit, void: true }),
      ),
    )
}

type LedgerFlags = { id: string | undefined } & Record<string, unknown>

/** Exits with 1 if the transfer failed. */
async function paid({ api, print, signal }: Session, parts: string[], asked: LedgerFlags): Promise<ExitOutcome> {
  const body = given({ ...asked, id: asked.id ?? randomUUID() })
  const answer = await api().json<{ results: TransferResult[] }>(route(parts), { method: 'POST', body, signal })
  const [result] = answer.results
  print.result(answer, (paint) => fields({ id: result?.id, status: result?.status, reason: result?.reason ?? undefined }, paint))
  if (result?.status !== 'failed') return
  for (const remedy of remediesFor(result.reason, { is_own_id: asked.id !== undefined })) print.note(remedy)
  return 1
}
