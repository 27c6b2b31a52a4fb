import { createRoute, z } from '@hono/zod-openapi'
import { iso } from '../../base/time.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import { scopeName } from '../../core/event.ts'
import { approvalRunStatuses, approvalStatus, type Approval } from '../../contract/approval.ts'
import { findApproval, listApprovals } from '../../store/approvals.ts'
import { ageCursor, beforeOf, nextByAge } from '../describe/age-cursor.ts'
import { guard, json, paged, pageLimit, problems, resource } from '../describe/describe.ts'
import { notFound } from '../problems/refusals.ts'

const tags = ['Approvals']
const time = z.iso.datetime()

const ended = z.array(z.object({ tool: z.string(), status: z.string() }))
const run = z
  .object({
    run_id: z
      .string()
      .nullable()
      .meta({ description: 'As the scope’s log names it; null where the gate refused it when it was to begin.' }),
    status: z.enum(approvalRunStatuses),
    reason: z.string().nullable().meta({ description: 'Why it is not ok.' }),
    outputs: z
      .record(z.string(), z.unknown())
      .meta({ description: 'As the scope’s log shows them: without secrets, and not where they are long.' }),
    steps: ended,
    compensation: ended.meta({ description: 'What undid steps after a failure.' }),
    cost_usd: z.number(),
    ended_at: time.nullable(),
  })
  .openapi('ApprovalRun')

export const approval = z
  .object({
    id: z.string(),
    scope: z.string(),
    skill_id: z.string(),
    version: z.string(),
    manifest_hash: z.string(),
    inputs_hash: z.string().meta({ description: 'What is approved is this version with these inputs, and nothing else.' }),
    inputs: z.record(z.string(), z.unknown()).meta({ description: 'Secrets in them are masked.' }),
    why: z.string(),
    requested_by: z.string(),
    requested_key: z.string().nullable().meta({ description: 'The id of the key that proposed it; null where an agent or a reflex did.' }),
    self_approval: z.boolean().meta({ description: 'Whether that key may approve it, too.' }),
    created_at: time,
    expires_at: time,
    status: approvalStatus,
    decided_by: z.string().nullable(),
    decided_at: time.nullable(),
    reason: z.string().nullable(),
    run: run.nullable().meta({ description: 'What became of it, about a second after it has; null until it has begun.' }),
  })
  .openapi('Approval')

export const approvalPath = z.object({ id: z.string().min(1).max(128) })

const list = createRoute({
  method: 'get',
  path: '/v1/approvals',
  operationId: 'listApprovals',
  tags,
  summary: 'List approvals, newest first',
  description: 'What waits for somebody to decide, and what was decided, in the scopes that the key covers.',
  ...guard({ roles: ['operator'] }),
  request: {
    query: z.object({
      status: approvalStatus.optional(),
      scope: scopeName.optional(),
      limit: pageLimit(1000),
      cursor: ageCursor,
    }),
  },
  responses: { 200: json(paged(approval), 'A page.'), ...problems(400) },
})

const find = createRoute({
  method: 'get',
  path: '/v1/approvals/{id}',
  operationId: 'getApproval',
  tags,
  summary: 'Get an approval',
  ...guard({ roles: ['operator'] }),
  request: { params: approvalPath },
  responses: { 200: json(approval, 'The approval.'), ...problems(400, 404) },
})

export const approvalRoutes = resource()
  .openapi(list, async (c) => {
    const { limit, cursor, ...query } = c.req.valid('query')
    const { scopes: patterns } = c.var.principal
    const found = await listApprovals(c.env.DB, { ...query, patterns, before: beforeOf(cursor), limit, now: Date.now() })
    const next_cursor = nextByAge(found, ({ created_at, id }) => ({ at: created_at, id }))
    return c.json({ items: found.items.map(presentApproval), next_cursor }, 200)
  })
  .openapi(find, async (c) => c.json(presentApproval(await myApproval(c.env.DB, c.var.principal, c.req.valid('param').id)), 200))

/** One that the key does not cover is not there for it. */
export async function myApproval(db: D1Database, principal: Principal, id: string): Promise<Approval> {
  const found = await findApproval(db, id, Date.now())
  if (!found || !coversScope(principal, found.scope)) throw notFound(`There is no approval ${id} in the scopes of this key.`)
  return found
}

export const presentApproval = ({ created_at, expires_at, decided_at, run, ...rest }: Approval) => ({
  ...rest,
  created_at: iso(created_at),
  expires_at: iso(expires_at),
  decided_at: isoOrNull(decided_at),
  run: run && { ...run, ended_at: isoOrNull(run.ended_at) },
})

const isoOrNull = (ms: number | null): string | null => (ms === null ? null : iso(ms))
