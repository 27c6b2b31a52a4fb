import type { Refused, Result } from '../../base/result.ts'
import { LEDGER, type AccountKey } from './contract/ledger-api.ts'
import { isKeyId } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { keysCalled, knownScopes } from './store/owners.ts'
import { storeOf } from '../../store/store.ts'

const KEY = 'key:'
const SCOPE = 'scope:'
type OwnKey = { key_id: string; name: string }

/** Accounts by the names that a request gives them, and what a caller of the Ledger vouches for. */
export type Accounts = { named: ReadonlyMap<string, string>; opens: string[]; owners: Record<string, string> }
type SeveralKeys = Refused<'several_keys'>

/** Scopes that this isolate has seen to exist. */
const known = new Set<string>()
const MOST_KNOWN = 10_000

/**
 * Finds the accounts that texts such as `key:NAME` stand for. Names of keys repeat: a key means
 * itself by its own, and nobody else may mean one of several. `opens`: for an act, for which
 * accounts of keys and scopes that exist are opened; else they are only read.
 */
export async function findAccounts(
  env: Env,
  asked: readonly string[],
  { own, opens }: { own: OwnKey | null; opens: boolean },
): Promise<Result<Accounts, SeveralKeys>> {
  const texts = [...new Set(asked)]
  const called = texts.filter((text) => text.startsWith(KEY)).map((text) => text.slice(KEY.length))
  const keys = await keysOf(env, called, { own, opens })
  if (!keys.ok) return keys
  const ledger = env.LEDGER.getByName(LEDGER)
  const of_keys = called.length === 0 ? [] : await ledger.accountsOfKeys(keys.keys)
  const named = new Map(texts.map((text) => [text, text]))
  for (const [index, { account }] of of_keys.entries()) named.set(`${KEY}${called[index]}`, account)
  const existing = opens ? await existingScopes(env, texts) : []
  const owners = Object.fromEntries(of_keys.flatMap(({ account, owner }) => (owner === null ? [] : [[account, owner]])))
  return { ok: true, named, owners, opens: [...existing, ...Object.keys(owners)] }
}

/** The account of a key, which may not be open. */
export async function accountOfKey(env: Env, { key_id, name }: OwnKey): Promise<string> {
  const [found] = await env.LEDGER.getByName(LEDGER).accountsOfKeys([{ id: key_id, name, opens: false }])
  if (!found) throw new Error('The Ledger has found no account for a key')
  return found.account
}

type AccountAccess = { own: OwnKey | null; opens: boolean }

async function keysOf(
  env: Env,
  called: readonly string[],
  { own, opens }: AccountAccess,
): Promise<Result<{ keys: AccountKey[] }, SeveralKeys>> {
  const isOwn = (text: string): boolean => own !== null && (text === own.key_id || (text === own.name && !isKeyId(text)))
  const others = called.filter((text) => !isOwn(text))
  const found = others.length === 0 ? [] : await keysCalled(storeOf(env), others)
  const keys: AccountKey[] = []
  for (const text of called) {
    // A text that looks like an id is never read as a name: a stranger could choose that name.
    const by = isKeyId(text) ? 'id' : 'name'
    const other = found.find((one) => one.called === text && one.by === by)
    if (own !== null && isOwn(text)) keys.push({ id: own.key_id, name: own.name, opens })
    else if (other?.several)
      return {
        ok: false,
        reason: 'several_keys',
        detail: `Several keys are named ${text}: use ${KEY}ID, with the id of the key that you mean.`,
      }
    // The key may have been deleted: its account is closed, and has its balance.
    else keys.push(other ? { id: other.id, name: other.name, opens } : { id: text, name: text, opens: false })
  }
  return { ok: true, keys }
}

async function existingScopes(env: Env, texts: readonly string[]): Promise<string[]> {
  const scopes = texts.filter((text) => text.startsWith(SCOPE))
  if (known.size > MOST_KNOWN) known.clear()
  const unknown = scopes.filter((text) => !known.has(text)).map((text) => text.slice(SCOPE.length))
  for (const scope of unknown.length > 0 ? await knownScopes(storeOf(env), unknown) : []) known.add(`${SCOPE}${scope}`)
  return scopes.filter((text) => known.has(text))
}
