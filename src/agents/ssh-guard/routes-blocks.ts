import { createRoute, z } from '@hono/zod-openapi'
import { withIso } from '../../base/time.ts'
import { coversScope } from '../../contract/principal.ts'
import { scopeName } from '../../core/event.ts'
import { type Block, findBlock, listBlocks } from './blocks.ts'
import { guard, json, problems, resource } from '../../http/describe/describe.ts'
import { byAge, listed, paged } from '../../http/describe/paging.ts'
import { operatorCall } from './operator-call.ts'
import { notFound } from '../../http/problems/refusals.ts'

const tags = ['SSH guard']
const block = z
  .object({
    id: z.string(),
    scope: z.string(),
    address: z.string().meta({ description: 'An address, or a network such as 203.0.113.0/24.' }),
    reason: z.string(),
    blocked_at: z.iso.datetime(),
  })
  .openapi('Block')

const list = createRoute({
  method: 'get',
  path: '/v1/blocks',
  operationId: 'listBlocks',
  tags,
  summary: 'List blocked addresses and networks, newest first',
  description: 'Active blocks in the scopes that the key covers. A lifted block is in the log of its scope.',
  ...guard({ roles: ['viewer'] }),
  request: { query: byAge({ scope: scopeName.optional() }) },
  responses: { 200: json(paged(block), 'A page.'), ...problems(400) },
})

const lift = createRoute({
  method: 'delete',
  path: '/v1/blocks/{id}',
  operationId: 'liftBlock',
  tags,
  summary: 'Lift a block',
  description:
    'Calls the tool that the scope’s agent would call: the firewall is notified, the scope’s log records it, and the reflex that blocked the address is overruled. A new attack can be blocked again. 503: the firewall could not be notified; the block is unchanged, and the request can be retried.',
  ...guard({ roles: ['operator'] }),
  request: { params: z.object({ id: z.string().min(1).max(128) }) },
  responses: { 204: { description: 'Lifted.' }, ...problems(400, 404, 409, 503) },
})

export const blockRoutes = resource()
  .openapi(list, async (c) => {
    const { cursor: before, ...query } = c.req.valid('query')
    const found = await listBlocks(c.env.DB, { ...query, patterns: c.var.principal.scopes, before })
    return c.json(listed(found, { present, cursor: ({ blocked_at, id }) => ({ at: blocked_at, id }) }), 200)
  })
  .openapi(lift, async (c) => {
    const { id } = c.req.valid('param')
    const { principal } = c.var
    const found = await findBlock(c.env.DB, id)
    if (!found || !coversScope(principal, found.scope)) throw notFound(`There is no block ${id} in the scopes of this key.`)
    const what = { what: `The block of ${found.address}`, done: 'lifted' }
    await operatorCall(c, found.scope, { ...unblocking(found.address), key: `lift:${id}`, ...what })
    return c.body(null, 204)
  })

const unblocking = (address: string): { tool: string; input: object } =>
  address.includes('/') ? { tool: 'unblock_network', input: { network: address } } : { tool: 'unblock', input: { address } }

const present = (block: Block) => withIso(block, ['blocked_at'])
