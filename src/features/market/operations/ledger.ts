import { z } from 'zod'
import { account, ledgerAudit, ledgerReport, reportGroups, type LedgerReport } from '../contract/account.ts'
import { accountId, amount, MOST_TRANSFERS, newMint, newTransfer, transfer, transferResult } from '../contract/transfer.ts'
import { remediesFor } from '../contract/remedies.ts'
import { accounts, statement as statements } from '../contract/lists.ts'
import { operations, type Resource } from '../../../contract/operation.ts'
import type { Column, Flag, OperationFields } from '../../../contract/shown.ts'
import { paged, pageLimit } from '../../../contract/paging.ts'

const operation = operations({ tag: 'Ledger', roles: ['viewer'] })

const accountPath = z.object({ id: accountId })
const pageQuery = z.object({
  limit: pageLimit(1000),
  cursor: z.string().max(300).optional(),
  after: z.string().max(300).optional().describe('The same as `cursor`.'),
})
const results = z.object({ results: z.array(transferResult) })
const time = z.iso.datetime({ offset: true }).optional()

type Results = z.infer<typeof results>
/** Each command that pays says how it ended, and exits with 1 if the transfer failed. */
const paid = {
  fills: 'id',
  shows: ({ results: [result] }: Results) => [{ id: result?.id, status: result?.status, reason: result?.reason ?? undefined }],
  failed: ({ results: [result] }: Results) => result?.status === 'failed',
  notes: ({ results: [result] }: Results, { id }: OperationFields) =>
    result?.status === 'failed' ? remediesFor(result.reason, { is_own_id: id !== undefined }) : [],
}
const once: Flag = ['--id <id>', 'your id of the transfer: repeating it pays no second time']
const memo: Flag = ['--memo <text>', 'a note']
const whose: Flag = ['--debit <account>', 'the account that pays it, if several have this id']
const inScrip = ['in scrip', 'whole'] as const

export const send = operation('post /v1/ledger/transfers', 'sendTransfers', 'Transfer scrip', {
  description:
    'One transfer, or up to 1,000 in an array, which one transaction makes in order. An id has one outcome, for ever: the same transfer again is answered `exists`, and one that failed stays failed. ' +
    'An id from before the retention of the ledger fails with `id_used_long_ago`. ' +
    'The key must be the one whose account pays, or an operator of the scope that pays; with `void`, that is paid.',
  roles: ['publisher'],
  change: true,
  body: z.union([newTransfer, z.array(newTransfer).min(1).max(MOST_TRANSFERS)]),
  example: { id: 'invoice-17', debit: 'scope:shop', credit: 'scope:cook', amount: 5 },
  agent: {
    name: 'genesis_ledger.transfer',
    description: 'Pays scrip from your account to another one: scope:NAME, key:NAME or key:ID.',
    input: z.strictObject({ to: accountId, amount, memo: z.string().max(500).optional() }),
  },
  answers: { 200: [results, 'The results, in order.'] },
})

export const mint = operation('post /v1/ledger/mint', 'mintScrip', 'Make new scrip', {
  description:
    'A transfer from `genesis`, for admins of all scopes (`*`). What they mint for an account of a tenant is the budget of that tenant, whose operators transfer it on. ' +
    'For an account that is not known yet (404) nothing is made, and the same mint succeeds later.',
  roles: ['admin'],
  body: newMint,
  example: { id: 'mint-1', to: 'scope:shop', amount: 1000 },
  answers: { 200: [results, 'The result.'] },
  problems: [404],
  command: {
    ...paid,
    usage: 'mint <account> <amount>',
    help: 'Make new scrip, as an admin',
    arguments: { account: ['scope:NAME, key:NAME or key:ID'], amount: inScrip },
    flags: [once, memo],
    asks: ({ account: to, ...rest }) => ({ ...rest, to }),
  },
})

export const list = operation(accounts.at, 'listAccounts', 'List accounts', {
  description: 'For viewers of all scopes.',
  query: pageQuery,
  answers: { 200: [paged(account), 'A page, by id.'] },
  command: {
    usage: 'accounts',
    table: {
      columns: accounts.columns,
      empty: 'No account is open yet.',
    },
  },
})

export const find = operation('get /v1/ledger/accounts/{id}', 'getAccount', 'Get an account', {
  description: 'For viewers of its scope, and for the key whose account it is. `genesis` and `escrow` are for viewers of all scopes.',
  params: accountPath,
  agent: {
    name: 'genesis_ledger.balance',
    description: 'Reads your account: its balance in scrip, and what of it is available.',
    input: z.strictObject({}),
  },
  answers: { 200: [account, 'The account.'] },
  problems: [404],
  command: { usage: 'account <id>', help: 'Show an account', shows: (found) => [found] },
})

export const statement = operation(statements.at, 'getStatement', 'List the transfers of an account, oldest first', {
  description: 'From the copy in D1, and what is newer from the ledger itself: a transfer that was answered is in it.',
  params: accountPath,
  query: pageQuery,
  answers: { 200: [paged(transfer), 'A page.'] },
  problems: [404],
  command: {
    usage: 'statement <id>',
    table: {
      columns: statements.columns,
      empty: 'No transfer yet.',
    },
  },
})

export const report = operation('get /v1/ledger/accounts/{id}/report', 'getLedgerReport', 'Sum the payments of an account', {
  description:
    'By day, code or counterparty, at most 1,000 groups: the newest days, else the largest sums. From the copy in D1, which follows within about a second; `as_of` says up to where.',
  params: accountPath,
  query: z.object({
    by: z.enum(reportGroups).default('day').describe('What the sums are grouped by.'),
    since: time.describe('30 days before `until`, if unset.'),
    until: time.describe('Now, if unset.'),
  }),
  answers: { 200: [ledgerReport, 'The sums.'] },
  problems: [404],
  command: {
    usage: 'report <id>',
    help: 'Sum the payments of an account, as D1 has them',
    flags: [
      ['--by <group>', 'what the sums are grouped by', { choices: reportGroups, standard: 'day' }],
      ['--since <time>', 'paid at or after a time: 10m ago, or an ISO time', { is: 'instant' }],
      ['--until <time>', 'paid before a time: 10m ago, or an ISO time', { is: 'instant' }],
    ],
    shows: ({ items, as_of }) => [
      { as: 'table', rows: items, columns: sumColumns },
      as_of === null ? 'D1 has no transfer yet.' : `As of transfer ${as_of.seq}, at ${as_of.at}.`,
    ],
  },
})

export const audit = operation('get /v1/ledger/audit', 'auditLedger', 'Recompute the ledger from its history', {
  description: 'For viewers of all scopes.',
  answers: { 200: [ledgerAudit, 'The sums, and what does not add up.'] },
  command: {
    usage: 'audit',
    help: 'Recompute all from the history; exit with 1 if it does not add up',
    shows: ({ problems, checkpoint, ...sums }) => [
      { ...sums, left: checkpoint?.transfers ?? 0, checkpoint: checkpoint?.digest ?? null },
      ...problems,
    ],
    failed: ({ ok }) => !ok,
  },
})

const sumColumns: readonly Column<LedgerReport['items'][number]>[] = [
  { title: 'Paid', of: ({ debits }) => debits },
  { title: 'Received', of: ({ credits }) => credits },
  { title: 'Transfers', of: ({ transfers }) => transfers },
  { title: 'Of', of: ({ group }) => group },
]

const pay = {
  ...send,
  command: {
    ...paid,
    usage: 'pay <from> <to> <amount>',
    help: 'Transfer scrip',
    arguments: { from: ['the account that pays'], to: ['the account that is paid'], amount: inScrip },
    flags: [
      once,
      memo,
      ['--code <code>', 'the kind of payment, for reports'],
      ['--pending', 'only reserve the amount, until it is posted or voided'],
      ['--timeout <seconds>', 'with --pending: it is voided after this time', { is: 'whole', field: 'timeout_s' }],
    ],
    wrong: ({ timeout_s, pending }) =>
      timeout_s !== undefined && !pending ? '--timeout is for --pending: other transfers are paid at once.' : null,
    asks: ({ from: debit, to: credit, ...rest }) => ({ ...rest, debit, credit }),
  },
} satisfies typeof send

const post = {
  ...send,
  command: {
    ...paid,
    usage: 'post <pending>',
    help: 'Pay a pending transfer',
    flags: [once, whose, ['--amount <scrip>', 'a part; the rest returns', { is: 'whole' }]],
    asks: ({ pending: pending_id, amount: part, ...rest }) => ({ ...rest, pending_id, post: part ?? true }),
  },
} satisfies typeof send

const withdraw = {
  ...send,
  command: {
    ...paid,
    usage: 'void <pending>',
    help: 'Return a pending transfer',
    flags: [once, whose],
    asks: ({ pending: pending_id, ...rest }) => ({ ...rest, pending_id, void: true }),
  },
} satisfies typeof send

const examples = `
Accounts are scope:NAME, key:NAME (key:ID where several keys have the name), genesis and escrow.

Examples:
  reflex ledger mint scope:shop/berlin 1000
  reflex ledger pay scope:shop/berlin scope:shop/paris 5 --memo "for the reflex"
  reflex ledger pay scope:shop/berlin scope:shop/paris 5 --pending --timeout 3600 --id order-17
  reflex ledger post order-17 --amount 3
  reflex ledger statement scope:shop/berlin`

export const ledger: Resource = {
  noun: 'ledger',
  help: 'Accounts and transfers of scrip',
  examples,
  verbs: [list, find, statement, report, audit, mint, pay, post, withdraw],
}
