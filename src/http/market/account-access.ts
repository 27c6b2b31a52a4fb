import { z } from '@hono/zod-openapi'
import type { Env } from '../../env.ts'
import { LEDGER, type LedgerCaller } from '../../contract/market/ledger-api.ts'
import { accountId } from '../../contract/market/transfer.ts'
import { coversScope, hasRole, type Principal } from '../../contract/principal.ts'
import { scopeOfOwner } from '../../contract/reflex.ts'
import { keysNamed } from '../../store/access/keys.ts'
import { scopeExists } from '../../store/scopes.ts'
import { storeOf } from '../../store/store.ts'
import { pageLimit } from '../describe/paging.ts'
import { forbidden } from '../problems/refusals.ts'

const KEY = 'key:'

/** The account of an artifact's owner, which is a key or the agent of a scope. */
export const accountOfOwner = ({ owner, owner_id }: { owner: string; owner_id: string }): string =>
  scopeOfOwner(owner_id) === null ? `${KEY}${owner}` : owner_id

/** True for the key itself, operators of the scope, and admins of all scopes. */
export function mayActFor(principal: Principal, account: string): boolean {
  const scope = scopeOfOwner(account)
  if (scope !== null) return hasRole(principal, 'operator') && coversScope(principal, scope)
  return account.startsWith(KEY) && (isOwnAccount(principal, account) || isAdminOfAll(principal))
}

/** Keys belong to no scope, so that only these admins act for other keys. */
export const isAdminOfAll = (principal: Principal): boolean => hasRole(principal, 'admin') && coversScope(principal, '*')

/** Names of keys repeat: a key that acts for an account of its name must be its owner. */
export const ownKeyId = (principal: Principal, account: string): string | undefined =>
  account.startsWith(KEY) && !isAdminOfAll(principal) ? principal.key_id : undefined

type Caller = { env: Env; principal: Principal }

/** True for the key itself and viewers of the scope, or of all scopes. */
export async function mayRead({ env, principal }: Caller, account: string): Promise<boolean> {
  const isViewer = hasRole(principal, 'viewer') && coversScope(principal, scopeOfOwner(account) ?? '*')
  return isViewer || ownsAccount({ env, principal }, account)
}

export async function demandReader(caller: Caller, account: string): Promise<void> {
  if (!(await mayRead(caller, account))) throw forbidden(`The key ${caller.principal.name} does not read ${account}.`)
}

/** For lists of what an account takes part in, by its place. */
export const accountQuery = z.object({
  account: accountId,
  limit: pageLimit(100),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional(),
})

export const mayReadOne = async (caller: Caller, accounts: readonly string[]): Promise<boolean> =>
  (await Promise.all(accounts.map((account) => mayRead(caller, account)))).some(Boolean)

/** Names of keys repeat: an account belongs to the key that opened it. */
export async function ownsAccount({ env, principal }: Caller, account: string): Promise<boolean> {
  if (!isOwnAccount(principal, account)) return false
  const owner = await env.LEDGER.getByName(LEDGER).ownerOf(account)
  return owner === null || owner === principal.key_id
}

const isOwnAccount = ({ name }: Principal, account: string): boolean => account === `${KEY}${name}`

/** A caller of the Ledger that may act for the account, which is opened if D1 has its owner. */
export async function callerFor({ env, principal }: Caller, account: string): Promise<LedgerCaller> {
  if (!mayActFor(principal, account))
    throw forbidden(
      `The key ${principal.name} does not act for ${account}: that needs the key itself, an operator of the scope, or an admin of all scopes.`,
    )
  const { key_id, name } = principal
  if (isOwnAccount(principal, account)) return { name, counted: key_id, opens: [account], owners: { [account]: key_id } }
  const scope = scopeOfOwner(account)
  if (scope !== null) return { name, counted: key_id, opens: (await scopeExists(storeOf(env), scope)) ? [account] : [], owners: {} }
  const [id, ...others] = await keysNamed(storeOf(env), account.slice(KEY.length))
  // Names of keys repeat: an admin opens no account that several keys could claim.
  return id !== undefined && others.length === 0
    ? { name, counted: key_id, opens: [account], owners: { [account]: id } }
    : { name, counted: key_id, opens: [], owners: {} }
}
