import { z } from '@hono/zod-openapi'
import { warn } from '../../base/warn.ts'
import { account, ledgerAudit } from '../../contract/market/account.ts'
import { LEDGER, type LedgerCaller } from '../../contract/market/ledger-api.ts'
import {
  accountId,
  ESCROW,
  GENESIS,
  misshapen,
  MOST_TRANSFERS,
  newMint,
  newTransfer,
  transferResult,
  type NewTransfer,
  type Transfer,
  type TransferFailure,
  type TransferResult,
} from '../../contract/market/transfer.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Problem } from '../../contract/problem.ts'
import type { Env } from '../../env.ts'
import type { Accounts } from '../../market/accounts.ts'
import { guard, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { paged, pageLimit } from '../../contract/paging.ts'
import { forbidden, invalid, notFound, tooMany } from '../problems/refusals.ts'
import { accountsNamed, isAdminOfAll, mayActFor, readableAccount } from './account-access.ts'

const route = routes('Ledger')
export const accountPath = z.object({ id: accountId })
export const pageQuery = z.object({
  limit: pageLimit(1000),
  cursor: z.string().max(300).optional(),
  after: z.string().max(300).optional().describe('The same as `cursor`.'),
})
const results = z.object({ results: z.array(transferResult) })

const send = route('post /v1/ledger/transfers', 'sendTransfers', 'Transfer scrip', {
  description:
    'One transfer, or up to 1,000 in an array, which one transaction makes in order. An id has one outcome, for ever: the same transfer again is answered `exists`, and one that failed stays failed. ' +
    'An id from before the retention of the ledger fails with `id_used_long_ago`. ' +
    'The key must be the one whose account pays, or an operator of the scope that pays; with `void`, that is paid.',
  ...guard({ roles: ['publisher'], body: 'json' }),
  request: {
    body: jsonRequest(z.union([newTransfer, z.array(newTransfer).min(1).max(MOST_TRANSFERS)]), {
      id: 'invoice-17',
      debit: 'scope:shop',
      credit: 'scope:cook',
      amount: 5,
    }),
  },
  responses: { 200: json(results, 'The results, in order.'), ...problems(400, 413, 415) },
})

const mint = route('post /v1/ledger/mint', 'mintScrip', 'Make new scrip', {
  description:
    'A transfer from `genesis`, for admins of all scopes (`*`). What they mint for an account of a tenant is the budget of that tenant, whose operators transfer it on. ' +
    'For an account that is not known yet (404) nothing is made, and the same mint succeeds later.',
  ...guard({ roles: ['admin'], body: 'json' }),
  request: { body: jsonRequest(newMint, { id: 'mint-1', to: 'scope:shop', amount: 1000 }) },
  responses: { 200: json(results, 'The result.'), ...problems(400, 404, 413, 415) },
})

const list = route('get /v1/ledger/accounts', 'listAccounts', 'List accounts', {
  description: 'For viewers of all scopes.',
  ...guard({ roles: ['viewer'] }),
  request: { query: pageQuery },
  responses: { 200: json(paged(account), 'A page, by id.'), ...problems(400) },
})

const find = route('get /v1/ledger/accounts/{id}', 'getAccount', 'Get an account', {
  description: 'For viewers of its scope, and for the key whose account it is. `genesis` and `escrow` are for viewers of all scopes.',
  ...guard({ roles: ['viewer'] }),
  request: { params: accountPath },
  responses: { 200: json(account, 'The account.'), ...problems(400, 404) },
})

const audit = route('get /v1/ledger/audit', 'auditLedger', 'Recompute the ledger from its history', {
  description: 'For viewers of all scopes.',
  ...guard({ roles: ['viewer'] }),
  responses: { 200: json(ledgerAudit, 'The sums, and what does not add up.'), ...problems() },
})

const ledgerOf = (env: Env) => env.LEDGER.getByName(LEDGER)
type Caller = { env: Env; principal: Principal }

export const ledgerRoutes = resource()
  .openapi(send, async (c) => {
    const asked = [c.req.valid('json')].flat()
    const errors = asked.flatMap((one, index) => {
      const message = misshapen(one)
      return message === null ? [] : [{ index, path: '', message }]
    })
    if (errors[0]) throw invalid(`Transfer ${errors[0].index}: ${errors[0].message}.`, errors)
    const caller = { env: c.env, principal: c.var.principal }
    const accounts = await accountsNamed(caller, asked.flatMap(sidesOf), { opens: true })
    const transfers = asked.map((one) => withAccounts(one, accounts))
    const { meant, ends } = await demandPayer(caller, transfers)
    const by = { ...callerOf(c.var.principal, accounts), ends, empties: isAdminOfAll(c.var.principal) }
    const made = await ledgerOf(c.env).transfer(meant, by)
    demandRoom(c.var.principal, made[0])
    return c.json({ results: made }, 200)
  })
  .openapi(mint, async (c) => {
    const { principal } = c.var
    const asked = c.req.valid('json')
    if (!isAdminOfAll(principal))
      throw forbidden(
        `The key ${principal.name} does not mint: that is for admins of all scopes. Ask one of them to mint a budget for an account of yours, and transfer from it.`,
      )
    const accounts = await accountsNamed({ env: c.env, principal }, [asked.to], { opens: true })
    const to = accounts.named.get(asked.to) ?? asked.to
    const result = await ledgerOf(c.env).mint({ ...asked, to }, callerOf(principal, accounts))
    demandRoom(principal, result)
    if (result.reason === 'credit_account_not_found') throw notYet(asked.to)
    warn({ message: 'scrip was minted', by: principal.name, ...asked, status: result.status })
    return c.json({ results: [result] }, 200)
  })
  .openapi(list, async (c) => {
    demandAll(c.var.principal)
    const { limit, cursor, after } = c.req.valid('query')
    const { items, next } = await ledgerOf(c.env).accounts({ after: cursor ?? after ?? null, limit })
    return c.json({ items, next_cursor: next }, 200)
  })
  .openapi(find, async (c) => {
    const id = await readableAccount({ env: c.env, principal: c.var.principal }, c.req.valid('param').id)
    const found = await ledgerOf(c.env).account(id)
    if (!found) throw noAccount(id)
    return c.json(found, 200)
  })
  .openapi(audit, async (c) => {
    demandAll(c.var.principal)
    return c.json(await ledgerOf(c.env).audit(), 200)
  })

const DAY_S = 86_400

const REFUSED: Partial<Record<TransferFailure, (name: string) => string>> = {
  too_many_failures: (name) => `Too many transfers of ${name} have failed today. Requests without a failure are still made.`,
  too_much_of_a_day: (name) =>
    `${name} has added as much to the ledger as one key may in a day (REFLEX_LEDGER_MB_PER_DAY). Requests that were made before are still answered.`,
}

/** The history is kept: a day has room for so much of a key. Nothing was done, no id is used up. */
function demandRoom({ name }: Principal, first: TransferResult | undefined): void {
  const why = first?.reason == null ? undefined : REFUSED[first.reason]
  if (why) throw tooMany('too-many-requests', why(name), DAY_S - (Math.floor(Date.now() / 1000) % DAY_S))
}

const notYet = (account: string) =>
  notFound(
    `There is no ${account} that the deployment knows of: nothing was minted, and the id is free. A scope is known about a second ` +
      'after its first event, a key once it is created: send the same mint again.',
  )

export const noAccount = (id: string) => notFound(`There is no account ${id} yet: an account opens with its first transfer.`)

const sidesOf = ({ debit, credit }: NewTransfer): string[] => [debit ?? [], credit ?? []].flat()

function withAccounts(asked: NewTransfer, { named }: Accounts): NewTransfer {
  const { debit, credit, ...rest } = asked
  const account = (text: string): string => named.get(text) ?? text
  return { ...rest, ...(debit !== undefined && { debit: account(debit) }), ...(credit !== undefined && { credit: account(credit) }) }
}

type Meant = { meant: NewTransfer[]; ends: { id: string; debit: string }[] }

/**
 * Refuses a caller that does not act for each account that pays. Returns the transfers as they are
 * meant, with the pending ones that the request may end: strangers may use the same ids.
 */
async function demandPayer(caller: Caller, asked: readonly NewTransfer[]): Promise<Meant> {
  const { name } = caller.principal
  const pending_ids = [...new Set(asked.flatMap(({ pending_id }) => pending_id ?? []))]
  const pendings = Map.groupBy(pending_ids.length > 0 ? await ledgerOf(caller.env).transfers(pending_ids) : [], ({ id }) => id)
  const mayAct = once((account) => mayActFor(caller, account))
  /** The payers of the pending transfers of the request, whom the caller acts for. */
  const payers = new Map<string, Set<string>>()
  const [meant, ends]: [NewTransfer[], Meant['ends']] = [[], []]
  for (const [index, one] of asked.entries()) {
    const { id, debit, pending_id } = one
    if (pending_id === undefined) {
      if (!(await mayAct(debit ?? ''))) throw notPayer(name, { index, payer: debit ?? '' })
      if (one.pending && debit !== undefined) payers.set(id, (payers.get(id) ?? new Set()).add(debit))
      meant.push(one)
      continue
    }
    const isMeant = (payer: string): boolean => debit === undefined || debit === payer
    const own = [...(payers.get(pending_id) ?? [])].filter(isMeant)
    const found = (pendings.get(pending_id) ?? []).filter((pending) => isMeant(pending.debit))
    const allowed = own.length > 0 ? found.filter((pending) => own.includes(pending.debit)) : await endable(found, one, mayAct)
    if (found[0] && own.length + allowed.length === 0) throw notPayer(name, { index, payer: found[0].debit })
    const sides = new Set([...own, ...allowed.map((pending) => pending.debit)])
    ends.push(...allowed.map((pending) => ({ id: pending_id, debit: pending.debit })))
    meant.push(sides.size === 1 ? { ...one, debit: [...sides].join() } : one)
  }
  return { meant, ends }
}

type MayAct = (account: string) => Promise<boolean>

/** The transfers that the caller pays; else, to void them, the ones that would pay the caller. */
async function endable(found: readonly Transfer[], { void: voids }: NewTransfer, mayAct: MayAct): Promise<Transfer[]> {
  const allowed = async (side: 'debit' | 'credit') => {
    const may = await Promise.all(found.map((one) => mayAct(one[side])))
    return found.filter((_, index) => may[index])
  }
  const paying = await allowed('debit')
  return paying.length > 0 || !voids ? paying : allowed('credit')
}

/** Asks once for each account. */
function once(mayAct: MayAct): MayAct {
  const asked = new Map<string, Promise<boolean>>()
  return (account) => {
    const answer = asked.get(account) ?? mayAct(account)
    asked.set(account, answer)
    return answer
  }
}

function notPayer(name: string, { index, payer }: { index: number; payer: string }): Problem {
  const why =
    payer === GENESIS ? 'only POST /v1/ledger/mint does' : payer === ESCROW ? 'only deals do' : 'that needs its key or an operator'
  return forbidden(`Transfer ${index}: the key ${name} does not pay from ${payer}: ${why}.`)
}

function demandAll(principal: Principal): void {
  if (!coversScope(principal, '*')) throw forbidden(`The key ${principal.name} does not cover all scopes.`)
}

const callerOf = ({ name, key_id }: Principal, { opens, owners }: Accounts): LedgerCaller => ({ name, counted: key_id, opens, owners })
