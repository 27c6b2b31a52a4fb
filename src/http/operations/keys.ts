import { createRoute, z } from '@hono/zod-openapi'
import { createKey } from '../auth/key.ts'
import { baseRoles, coversScope, keyName, roleName, type Principal } from '../../contract/principal.ts'
import type { Problem } from '../../contract/problem.ts'
import { scopePattern } from '../../contract/scope-pattern.ts'
import { deleteKey, findKey, insertKey, keyCursor, listKeys, type ListedKey } from '../../store/keys.ts'
import { guard, json, jsonRequest, paged, pageLimit, problems, resource } from '../describe/describe.ts'
import { forgetKey } from '../auth/key-source.ts'
import { forbidden, invalid, notFound } from '../problems/refusals.ts'

const tags = ['Keys']
const fields = {
  name: keyName.meta({ description: 'Also the `source` of the events that are sent with it.' }),
  roles: z
    .array(roleName)
    .min(1)
    .max(32)
    .meta({ description: 'admin ⊃ operator ⊃ publisher and viewer; other names are for the policies of skills, beside one of these.' }),
  scopes: z.array(scopePattern).min(1).max(100).meta({ description: 'Patterns: `*` stands for any characters.' }),
}
const listedKey = z.object({ id: z.string(), ...fields, created_at: z.iso.datetime() }).openapi('Key')

const create = createRoute({
  method: 'post',
  path: '/v1/keys',
  operationId: 'createKey',
  tags,
  summary: 'Create a key',
  description: 'The key is shown this once; only its hash is kept. Its scopes must be covered by those of the key that creates it.',
  ...guard({ roles: ['admin'], body: 'json' }),
  request: { body: jsonRequest(z.strictObject(fields), { name: 'ci', roles: ['publisher'], scopes: ['team-a/*'] }) },
  responses: { 201: json(z.object({ id: z.string(), ...fields, key: z.string() }), 'The key.'), ...problems(400, 413, 415) },
})

const list = createRoute({
  method: 'get',
  path: '/v1/keys',
  operationId: 'listKeys',
  tags,
  summary: 'List keys, newest first',
  ...guard({ roles: ['admin'] }),
  request: { query: z.object({ limit: pageLimit(1000), cursor: keyCursor.optional() }) },
  responses: { 200: json(paged(listedKey), 'A page, without the keys themselves.'), ...problems(400) },
})

const remove = createRoute({
  method: 'delete',
  path: '/v1/keys/{id}',
  operationId: 'deleteKey',
  tags,
  summary: 'Delete a key',
  description:
    'It is refused at once here, and everywhere within 30 s. The sockets and streams that it opened end within a minute of their use.',
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
    const { id, key, hash } = await createKey()
    await insertKey(c.env.DB, { id, name, roles, scopes, hash, created_at: Date.now() })
    c.header('Cache-Control', 'no-store')
    return c.json({ id, name, roles, scopes, key }, 201)
  })
  .openapi(list, async (c) => {
    const { scopes: patterns } = c.var.principal
    const { items, next_cursor } = await listKeys(c.env.DB, { ...c.req.valid('query'), patterns })
    return c.json({ items: items.map(present), next_cursor }, 200)
  })
  .openapi(remove, async (c) => {
    const { id } = c.req.valid('param')
    const key = await findKey(c.env.DB, id)
    if (!key || !coversKey(c.var.principal, key) || !(await deleteKey(c.env.DB, id))) throw notFound(`There is no key ${id}.`)
    forgetKey(id)
    return c.body(null, 204)
  })

const present = ({ created_at, ...key }: ListedKey) => ({ ...key, created_at: new Date(created_at).toISOString() })

/** An admin of some scopes neither sees nor deletes keys that reach beyond them. */
const coversKey = (principal: Principal, { scopes }: Pick<ListedKey, 'scopes'>): boolean =>
  scopes.every((pattern) => coversScope(principal, pattern))

/** No route is open to a key without one of the base roles, so that a typing error in it makes a key that can do nothing. */
function unknownRoles(roles: readonly string[]): Problem {
  const message = `needs one of ${baseRoles.join(', ')}: a key with ${roles.join(', ')} alone can do nothing`
  return invalid(`roles: ${message}.`, [{ path: 'roles', message }])
}

function tooWide(principal: Principal, pattern: string): Problem {
  return forbidden(`The key ${principal.name} does not cover ${pattern}, and so cannot create a key for it.`)
}
