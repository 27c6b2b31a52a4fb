import { z } from 'zod'
import { account, ledgerAudit, ledgerReport, reportGroups } from '../contract/account.ts'
import { accountId, amount, MOST_TRANSFERS, newMint, newTransfer, transfer, transferResult } from '../contract/transfer.ts'
import { accounts, statement as statements } from '../contract/lists.ts'
import { operations } from '../../../contract/operation.ts'
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
