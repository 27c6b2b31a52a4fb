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
  type TransferFailure,
  type TransferResult,
} from '../../contract/market/transfer.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { ownersOf } from '../../store/market/owners.ts'
import { storeOf } from '../../store/store.ts'
import { guard, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { paged, pageLimit } from '../describe/paging.ts'
import { forbidden, invalid, notFound, tooMany } from '../problems/refusals.ts'
import { demandReader, isAdminOfAll, mayActFor, ownsAccount } from './account-access.ts'

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
    const ends = await demandPayer(caller, asked)
    const sides = asked.flatMap(({ debit, credit }) => [debit ?? [], credit ?? []].flat())
    const by = { ...(await callerOf(caller, sides)), ends, empties: isAdminOfAll(c.var.principal) }
    const made = await ledgerOf(c.env).transfer(asked, by)
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
    const result = await ledgerOf(c.env).mint(asked, await callerOf({ env: c.env, principal }, [asked.to]))
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
    const { id } = c.req.valid('param')
    await demandReader({ env: c.env, principal: c.var.principal }, id)
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

/**
 * Refuses a caller that does not act for each account that pays. Returns the pending transfers that
 * the request may end.
 */
async function demandPayer({ env, principal }: Caller, asked: readonly NewTransfer[]): Promise<string[]> {
  const ends = asked.flatMap(({ pending_id }) => pending_id ?? [])
  const pendings = new Map(ends.length > 0 ? (await ledgerOf(env).transfers(ends)).map((found) => [found.id, found]) : [])
  const own = `key:${principal.name}`
  // The Ledger compares the owners of new transfers alone.
  const isNamesake = pendings.size > 0 && !isAdminOfAll(principal) && !(await ownsAccount({ env, principal }, own))
  for (const [index, { debit, pending_id, void: voids }] of asked.entries()) {
    const pending = pending_id === undefined ? undefined : pendings.get(pending_id)
    const payers = pending ? [pending.debit, ...(voids ? [pending.credit] : [])] : [debit ?? []].flat()
    // A pending transfer of the same request is checked in its own place.
    if (payers.length === 0 || payers.some((payer) => mayActFor(principal, payer) && !(pending && isNamesake && payer === own))) continue
    const [payer = ''] = payers
    const why =
      payer === GENESIS ? 'only POST /v1/ledger/mint does' : payer === ESCROW ? 'only deals do' : 'that needs its key or an operator'
    throw forbidden(`Transfer ${index}: the key ${principal.name} does not pay from ${payer}: ${why}.`)
  }
  return [...pendings.keys()]
}

function demandAll(principal: Principal): void {
  if (!coversScope(principal, '*')) throw forbidden(`The key ${principal.name} does not cover all scopes.`)
}

/** Scopes that this isolate has seen to exist. */
const known = new Set<string>()
const MOST_KNOWN = 10_000

/** Vouches for accounts that exist by D1. The caller's own key is known by its id. */
async function callerOf({ env, principal }: Caller, accounts: readonly string[]): Promise<LedgerCaller> {
  const own = `key:${principal.name}`
  const owners: Record<string, string> = accounts.includes(own) ? { [own]: principal.key_id } : {}
  const unknown = [...new Set(accounts)].filter((side) => side.includes(':') && !known.has(side) && side !== own)
  if (known.size > MOST_KNOWN) known.clear()
  for (const { account: found, owner } of unknown.length > 0 ? await ownersOf(storeOf(env), unknown) : []) {
    if (found.startsWith('scope:')) known.add(found)
    else if (owner) owners[found] = owner
  }
  return {
    name: principal.name,
    counted: principal.key_id,
    opens: [...Object.keys(owners), ...accounts.filter((side) => known.has(side))],
    owners,
  }
}
