import type { Env } from '../../../env.ts'
import type { LedgerCaller } from '../contract/ledger-api.ts'
import { coversScope, hasRole, isAdminOfAll, type Principal } from '../../../contract/principal.ts'
import { scopeOfOwner } from '../../../contract/reflex.ts'
import { accountOfKey, findAccounts, type Accounts } from '../accounts.ts'
import { forbidden, invalid } from '../../../http/problems/refusals.ts'

const KEY = 'key:'

type Caller = { env: Env; principal: Principal }

/** The accounts that a request names. `opens`: for an act, for which they are opened. */
export async function accountsNamed(
  { env, principal }: Caller,
  asked: readonly string[],
  { opens }: { opens: boolean },
): Promise<Accounts> {
  const found = await findAccounts(env, asked, { own: principal, opens })
  if (!found.ok) throw invalid(found.detail)
  return found
}

/** The account that a request wants to read, if the caller may. */
export async function readableAccount(caller: Caller, asked: string): Promise<string> {
  const { named } = await accountsNamed(caller, [asked], { opens: false })
  const account = named.get(asked) ?? asked
  if (!(await mayRead(caller, account))) throw forbidden(`The key ${caller.principal.name} does not read ${asked}.`)
  return account
}

/** True for the key itself, operators of the scope, and admins of all scopes. */
export async function mayActFor(caller: Caller, account: string): Promise<boolean> {
  const { principal } = caller
  const scope = scopeOfOwner(account)
  if (scope !== null) return hasRole(principal, 'operator') && coversScope(principal, scope)
  return account.startsWith(KEY) && (isAdminOfAll(principal) || isOwnAccount(caller, account))
}

/** The Ledger compares it with the owner of the account, which is the owner of its sale. */
export const ownKeyId = (principal: Principal, account: string): string | undefined =>
  account.startsWith(KEY) && !isAdminOfAll(principal) ? principal.key_id : undefined

/** True for the key itself and viewers of the scope, or of all scopes. */
async function mayRead(caller: Caller, account: string): Promise<boolean> {
  const { principal } = caller
  const isViewer = hasRole(principal, 'viewer') && coversScope(principal, scopeOfOwner(account) ?? '*')
  return isViewer || isOwnAccount(caller, account)
}

export const mayReadOne = async (caller: Caller, accounts: readonly string[]): Promise<boolean> =>
  (await Promise.all(accounts.map((account) => mayRead(caller, account)))).some(Boolean)

/** By the id of the key: names repeat. */
const isOwnAccount = async ({ env, principal }: Caller, account: string): Promise<boolean> =>
  account.startsWith(KEY) && account === (await accountOfKey(env, principal))

/** `asked`: the account as the caller names it. */
export async function demandActor(caller: Caller, account: string, asked = account): Promise<void> {
  if (!(await mayActFor(caller, account)))
    throw forbidden(
      `The key ${caller.principal.name} does not act for ${asked}: that needs the key itself, an operator of the scope, or an admin of all scopes.`,
    )
}

/** A caller of the Ledger that may act for the account that a request names. */
export async function actorFor(caller: Caller, asked: string): Promise<{ account: string; by: LedgerCaller }> {
  const { named, opens, owners } = await accountsNamed(caller, [asked], { opens: true })
  const account = named.get(asked) ?? asked
  await demandActor(caller, account, asked)
  const { key_id, name } = caller.principal
  return { account, by: { name, counted: key_id, opens, owners } }
}
