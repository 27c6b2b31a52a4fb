import { z } from '@hono/zod-openapi'
import { withIso } from '../../base/time.ts'
import { createKey } from '../auth/key.ts'
import { LEDGER } from '../../contract/market/ledger-api.ts'
import { baseRoles, coversScope, hasRole, key as listedKey, newKey, ownKey, type Principal } from '../../contract/principal.ts'
import type { Problem } from '../../contract/problem.ts'
import { deleteKey, findKey, insertKey, listKeys, type ListedKey } from '../../store/access/keys.ts'
import { guard, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { byAge, listed, paged } from '../describe/paging.ts'
import { forgetKey } from '../auth/key-source.ts'
import { forbidden, invalid, notFound } from '../problems/refusals.ts'
import { storeOf } from '../../store/store.ts'

const route = routes('Keys')

const create = route('post /v1/keys', 'createKey', 'Create a key', {
  description: 'The key is shown only once; only its hash is stored. The creating key must cover its scopes.',
  ...guard({ roles: ['admin'], body: 'json' }),
  request: { body: jsonRequest(newKey, { name: 'ci', roles: ['publisher'], scopes: ['team-a/*'] }) },
  responses: { 201: json(listedKey.omit({ created_at: true }).extend({ key: z.string() }), 'The key.'), ...problems(400, 413, 415) },
})

const list = route('get /v1/keys', 'listKeys', 'List keys, newest first', {
  ...guard({ roles: ['admin'] }),
  request: { query: byAge({}) },
  responses: { 200: json(paged(listedKey), 'A page, without the keys themselves.'), ...problems(400) },
})

const own = route('get /v1/key', 'getOwnKey', 'Get the key of this request', {
  description: 'What the key may do, for programs that show it.',
  ...guard({ roles: ['viewer', 'publisher'] }),
  responses: { 200: json(ownKey, 'Its name, roles and scopes.'), ...problems() },
})

const remove = route('delete /v1/keys/{id}', 'deleteKey', 'Delete a key', {
  description:
    'Takes effect immediately at this location, and everywhere within 30 s. Sockets and streams opened with the key are closed within a minute of use. Its account in the ledger is closed.',
  ...guard({ roles: ['admin'] }),
  request: { params: z.object({ id: z.string().min(1).max(64) }) },
  responses: { 204: { description: 'Deleted.' }, ...problems(400, 404) },
})

export const keyRoutes = resource()
  .openapi(create, async (c) => {
    const { name, roles, scopes } = c.req.valid('json')
    if (!roles.some((role) => baseRoles.some((base) => base === role))) throw unknownRoles(roles)
    const outside = scopes.find((pattern) => !coversScope(c.var.principal, pattern))
    if (outside !== undefined) throw tooWide(c.var.principal, outside)
    const { id, key, hash } = createKey()
    await insertKey(storeOf(c.env), { id, name, roles, scopes, hash, created_at: Date.now() })
    c.header('Cache-Control', 'no-store')
    return c.json({ id, name, roles, scopes, key }, 201)
  })
  .openapi(list, async (c) => {
    const { cursor: before, limit } = c.req.valid('query')
    const found = await listKeys(storeOf(c.env), { before, limit, patterns: c.var.principal.scopes })
    return c.json(listed(found, { present, cursor: ({ created_at, id }) => ({ at: created_at, id }) }), 200)
  })
  .openapi(own, (c) => {
    const { principal } = c.var
    return c.json({ ...principal, base_roles: baseRoles.filter((role) => hasRole(principal, role)) }, 200)
  })
  .openapi(remove, async (c) => {
    const { id } = c.req.valid('param')
    const key = await findKey(storeOf(c.env), id)
    if (!key || !coversKey(c.var.principal, key)) throw notFound(`Unknown key ${id}.`)
    await c.env.LEDGER.getByName(LEDGER).closeAccount(`key:${key.name}`, id)
    if (!(await deleteKey(storeOf(c.env), id))) throw notFound(`Unknown key ${id}.`)
    forgetKey(id)
    return c.body(null, 204)
  })

const present = (key: ListedKey) => withIso(key, ['created_at'])

/** An admin of some scopes can neither see nor delete keys that cover other scopes. */
const coversKey = (principal: Principal, { scopes }: Pick<ListedKey, 'scopes'>): boolean =>
  scopes.every((pattern) => coversScope(principal, pattern))

/** No route is open to a key without a base role, so a typo would create a useless key. */
function unknownRoles(roles: readonly string[]): Problem {
  const message = `needs one of ${baseRoles.join(', ')}: a key with ${roles.join(', ')} alone can do nothing`
  return invalid(`roles: ${message}.`, [{ path: 'roles', message }])
}

function tooWide(principal: Principal, pattern: string): Problem {
  return forbidden(`The key ${principal.name} does not cover ${pattern}, so it cannot create a key for it.`)
}
