import { ADMIN_KEY_ID, type Principal } from '../../contract/principal.ts'
import { hashKey, parseKey, sameHash } from './key.ts'

export type KeyRecord = { id: string; name: string; roles: string[]; scopes: string[]; hash: string }
/** Throws if the lookup fails. */
export type KeyLookup = (id: string) => Promise<KeyRecord | null>
/** `any_key` only improves an error. `before_look` throws if D1 was asked too often. */
export type Credentials = {
  admin_key: string | undefined
  keys: KeyLookup
  any_key?: () => Promise<boolean>
  before_look?: (id?: string) => Promise<void>
}
export type KeyRefusal = {
  ok: false
  reason: 'no_key_configured' | 'missing' | 'malformed' | 'unknown' | 'unavailable'
  detail: string
}
export type Authenticated = { ok: true; principal: Principal } | KeyRefusal

const admin: Principal = { key_id: ADMIN_KEY_ID, name: 'admin', roles: ['admin'], scopes: ['*'] }
const NO_HASH = '0'.repeat(64)

/** Upholds G7: only a matching key leads to a principal. `authorization` is the raw header. */
export async function authenticate(authorization: string | null, credentials: Credentials): Promise<Authenticated> {
  const configured = credentials.admin_key?.trim() ? credentials.admin_key.trim() : undefined
  const refused = await refuse(authorization, { ...credentials, admin_key: configured })
  if (refused.ok || configured !== undefined) return refused
  if (refused.reason === 'unavailable') return refused
  return (await mayHaveKeys(credentials)) ? refused : notConfigured
}

async function refuse(authorization: string | null, { admin_key, ...credentials }: Credentials): Promise<Authenticated> {
  if (authorization === null) return refusal('missing', 'Send a key: Authorization: Bearer KEY.')
  const token = /^bearer +(\S.*)$/i.exec(authorization.trim())?.[1]
  if (token === undefined) return refusal('malformed', 'The Authorization header must have the form: Bearer KEY.')
  const hash = hashKey(token)
  const isAdmin = sameHash(hash, hashKey(admin_key ?? ''))
  if (admin_key !== undefined && isAdmin) return { ok: true, principal: { ...admin } }
  return check(hash, parseKey(token)?.id, credentials)
}

type Lookup = Omit<Credentials, 'admin_key'>

async function check(hash: string, id: string | undefined, { keys, before_look }: Lookup): Promise<Authenticated> {
  let record: KeyRecord | null = null
  if (id !== undefined) await before_look?.(id)
  try {
    if (id !== undefined) record = await keys(id)
  } catch {
    return refusal('unavailable', 'Keys cannot be checked: the database does not respond. Try again in a few seconds.')
  }
  const matches = sameHash(hash, record?.hash ?? NO_HASH)
  if (!record || !matches) return refusal('unknown', 'Unknown key: it may have been deleted or mistyped.')
  return { ok: true, principal: { key_id: record.id, name: record.name, roles: record.roles, scopes: record.scopes } }
}

async function mayHaveKeys({ any_key, before_look }: Lookup): Promise<boolean> {
  try {
    await before_look?.()
    return any_key === undefined || (await any_key())
  } catch {
    return true
  }
}

const refusal = (reason: KeyRefusal['reason'], detail: string): KeyRefusal => ({ ok: false, reason, detail })
const notConfigured = refusal(
  'no_key_configured',
  'No key is configured, so everything is closed. Deployed: run `wrangler secret put REFLEX_ADMIN_KEY`. ' +
    'Locally: put REFLEX_ADMIN_KEY=… into .dev.vars. Then send it as Authorization: Bearer KEY.',
)
