import { warn } from '../../../base/warn.ts'
import { LEDGER, type LedgerCaller } from '../contract/ledger-api.ts'
import {
  ESCROW,
  GENESIS,
  misshapen,
  type NewTransfer,
  type Transfer,
  type TransferFailure,
  type TransferResult,
} from '../contract/transfer.ts'
import { audit, find, list, mint, send } from '../operations/ledger.ts'
import { coversScope, isAdminOfAll, type Principal } from '../../../contract/principal.ts'
import type { Problem } from '../../../contract/problem.ts'
import type { Env } from '../../../env.ts'
import type { Accounts } from '../accounts.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { forbidden, invalid, notFound, tooMany } from '../../../http/problems/refusals.ts'
import { accountsNamed, mayActFor, readableAccount } from './account-access.ts'

const ledgerOf = (env: Env) => env.LEDGER.getByName(LEDGER)
type Caller = { env: Env; principal: Principal }

export const ledgerRoutes = resource().openapiRoutes([
  serve(send, async (c, { body }) => {
    const asked = [body].flat()
    const errors = asked.flatMap((one, index) => {
      const message = misshapen(one)
      return message === null ? [] : [{ index, path: '', message }]
    })
    if (errors[0]) throw invalid(`Transfer ${errors[0].index}: ${errors[0].message}.`, errors)
    const caller = { env: c.env, principal: c.var.principal }
    const accounts = await accountsNamed(caller, asked.flatMap(sidesOf), { opens: true })
    const { meant, ends } = await demandPayer(caller, asked, accounts)
    const by = { ...callerOf(c.var.principal, accounts), ends, empties: isAdminOfAll(c.var.principal) }
    const made = await ledgerOf(c.env).transfer(meant, by)
    demandRoom(c.var.principal, made[0])
    return { results: made }
  }),
  serve(mint, async (c, { body: asked }) => {
    const { principal } = c.var
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
    return { results: [result] }
  }),
  serve(list, async (c, { query: { limit, cursor, after } }) => {
    demandAll(c.var.principal)
    const { items, next } = await ledgerOf(c.env).accounts({ after: cursor ?? after ?? null, limit })
    return { items, next_cursor: next }
  }),
  serve(find, async (c, { params }) => {
    const id = await readableAccount({ env: c.env, principal: c.var.principal }, params.id)
    const found = await ledgerOf(c.env).account(id)
    if (!found) throw noAccount(id)
    return found
  }),
  serve(audit, (c) => {
    demandAll(c.var.principal)
    return ledgerOf(c.env).audit()
  }),
])

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
async function demandPayer(caller: Caller, asked: readonly NewTransfer[], accounts: Accounts): Promise<Meant> {
  const { name } = caller.principal
  const pending_ids = [...new Set(asked.flatMap(({ pending_id }) => pending_id ?? []))]
  const pendings = Map.groupBy(pending_ids.length > 0 ? await ledgerOf(caller.env).transfers(pending_ids) : [], ({ id }) => id)
  const mayAct = once((account) => mayActFor(caller, account))
  /** The payers of the pending transfers of the request, whom the caller acts for. */
  const payers = new Map<string, Set<string>>()
  const meant: NewTransfer[] = []
  const ends: Meant['ends'] = []
  for (const [index, given] of asked.entries()) {
    const one = withAccounts(given, accounts)
    const { id, debit, pending_id } = one
    if (pending_id === undefined) {
      if (!(await mayAct(debit ?? ''))) throw notPayer(name, { index, payer: given.debit ?? '' })
      if (one.pending && debit !== undefined) payers.set(id, (payers.get(id) ?? new Set()).add(debit))
      meant.push(one)
      continue
    }
    const isMeant = (payer: string): boolean => debit === undefined || debit === payer
    const own = [...(payers.get(pending_id) ?? [])].filter(isMeant)
    const found = (pendings.get(pending_id) ?? []).filter((pending) => isMeant(pending.debit))
    const allowed = own.length > 0 ? found.filter((pending) => own.includes(pending.debit)) : await endable(found, one, mayAct)
    if (found[0] && own.length + allowed.length === 0) throw notPayer(name, { index, payer: given.debit ?? `the account of ${pending_id}` })
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

/** `payer`: as the caller names it. The account of another tenant is not told. */
function notPayer(name: string, { index, payer }: { index: number; payer: string }): Problem {
  const why =
    payer === GENESIS ? 'only POST /v1/ledger/mint does' : payer === ESCROW ? 'only deals do' : 'that needs its key or an operator'
  return forbidden(`Transfer ${index}: the key ${name} does not pay from ${payer}: ${why}.`)
}

function demandAll(principal: Principal): void {
  if (!coversScope(principal, '*')) throw forbidden(`The key ${principal.name} does not cover all scopes.`)
}

const callerOf = ({ name, key_id }: Principal, { opens, owners }: Accounts): LedgerCaller => ({ name, counted: key_id, opens, owners })
