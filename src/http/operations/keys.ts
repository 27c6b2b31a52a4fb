import { limits } from '../../base/limits.ts'
import type { Env } from '../../env.ts'
import { iso, isoOrNull, withIso } from '../../base/time.ts'
import { createKey, forgetKey } from '../auth/middleware.ts'
import { create, list, own, remove } from '../../contract/operations/keys.ts'
import { baseRoles, coversScope, hasRole, type Principal } from '../../contract/principal.ts'
import type { Problem } from '../../contract/problem.ts'
import { countKeys, deleteKey, findKey, insertKey, listKeys, type ListedKey } from '../../store/access/keys.ts'
import { resource, serve } from '../describe/operation.ts'
import { listed } from '../describe/paging.ts'
import { conflict, forbidden, invalid, notFound } from '../problems/refusals.ts'
import { storeOf } from '../../store/store.ts'

export const keyRoutes = resource().openapiRoutes([
  serve(create, async (c, { body: { name, roles, scopes, teaches = false, expires_at } }) => {
    if (!roles.some((role) => baseRoles.some((base) => base === role))) throw unknownRoles(roles)
    const outside = scopes.find((pattern) => !coversScope(c.var.principal, pattern))
    if (outside !== undefined) throw tooWide(c.var.principal, outside)
    const expires = expires_at === undefined ? null : Date.parse(expires_at)
    if (expires !== null && expires <= Date.now())
      throw invalid('expires_at: it is in the past.', [{ path: 'expires_at', message: 'it is in the past' }])
    await demandRoom(c.env, c.var.principal)
    const { id, key, hash } = createKey()
    await insertKey(storeOf(c.env), { id, name, roles, scopes, hash, teaches, created_at: Date.now(), expires_at: expires, used_at: null })
    c.header('Cache-Control', 'no-store')
    return { id, name, roles, scopes, ...(teaches && { teaches }), ...(expires !== null && { expires_at: iso(expires) }), key }
  }),
  serve(list, async (c, { query: { cursor: before, limit } }) => {
    const found = await listKeys(storeOf(c.env), { before, limit, patterns: c.var.principal.scopes })
    return listed(found, { present, cursor: ({ created_at, id }) => ({ at: created_at, id }) })
  }),
  serve(own, ({ var: { principal } }) => ({ ...principal, base_roles: baseRoles.filter((role) => hasRole(principal, role)) })),
  serve(remove, async (c, { params: { id } }) => {
    const key = await findKey(storeOf(c.env), id)
    if (!key || !coversKey(c.var.principal, key)) throw notFound(`Unknown key ${id}.`)
    for (const { keyDeleted } of c.var.features) await keyDeleted?.(c.env, key)
    if (!(await deleteKey(storeOf(c.env), id))) throw notFound(`Unknown key ${id}.`)
    forgetKey(id)
    return null
  }),
])

const present = ({ teaches, expires_at, used_at, ...key }: ListedKey) => ({
  ...withIso({ ...key, ...(teaches && { teaches }) }, ['created_at']),
  ...(expires_at !== null && { expires_at: iso(expires_at) }),
  used_at: isoOrNull(used_at),
})

/** An admin of some scopes can neither see nor delete keys that cover other scopes. */
const coversKey = (principal: Principal, { scopes }: Pick<ListedKey, 'scopes'>): boolean =>
  scopes.every((pattern) => coversScope(principal, pattern))

/** Each look-up of keys reads all of them, and each key has limits of its own. */
async function demandRoom(env: Env, { scopes }: Principal): Promise<void> {
  if (scopes.includes('*') || (await countKeys(storeOf(env), scopes)) < limits.keys_within) return
  throw conflict('too-many-keys', `The scopes of this key have ${limits.keys_within} keys. Delete those that nobody uses.`)
}

/** No route is open to a key without a base role, so a typo would create a useless key. */
function unknownRoles(roles: readonly string[]): Problem {
  const message = `needs one of ${baseRoles.join(', ')}: a key with ${roles.join(', ')} alone can do nothing`
  return invalid(`roles: ${message}.`, [{ path: 'roles', message }])
}

function tooWide(principal: Principal, pattern: string): Problem {
  return forbidden(`The key ${principal.name} does not cover ${pattern}, so it cannot create a key for it.`)
}
