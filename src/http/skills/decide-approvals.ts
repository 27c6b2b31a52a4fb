import { createRoute, z } from '@hono/zod-openapi'
import { hasRole, type Principal } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { decisionReason, type Approval } from '../../contract/approval.ts'
import { decideApproval } from '../../store/approvals.ts'
import { approval, approvalPath, myApproval, presentApproval } from './approvals.ts'
import { guard, json, jsonRequest, problems, resource } from '../describe/describe.ts'
import { conflict, forbidden, notFound } from '../problems/refusals.ts'
import { warn } from '../../base/warn.ts'

const decision = {
  method: 'post' as const,
  tags: ['Approvals'],
  ...guard({ roles: ['operator'], body: 'optional' }),
  request: {
    params: approvalPath,
    body: jsonRequest(z.strictObject({ reason: decisionReason.optional() }), { reason: 'checked with the team' }),
  },
  responses: { 200: json(approval, 'The approval as it is now.'), ...problems(400, 404, 409, 413, 415) },
}

const approve = createRoute({
  ...decision,
  path: '/v1/approvals/{id}/approve',
  operationId: 'approveRun',
  summary: 'Approve a run of a skill',
  description:
    'That version with those inputs, once. Of several decisions one is taken, and none of what has expired. Four eyes: the key that proposed it may not approve it, unless it has the role admin or the ' +
    "manifest's `policy.self_approval` allows it. A version that is no longer active is not approved. The body may be left out.",
})

const reject = createRoute({
  ...decision,
  path: '/v1/approvals/{id}/reject',
  operationId: 'rejectRun',
  summary: 'Reject a run of a skill',
  description: 'It does not run, and the scope’s log tells the reason. Whoever proposed it may take it back so. The body may be left out.',
})

export const decideApprovalRoutes = resource()
  .openapi(approve, async (c) => {
    const { id } = c.req.valid('param')
    const { reason = null } = c.req.valid('json')
    return c.json(presentApproval(await decide(c.env, c.var.principal, { id, status: 'approved', reason })), 200)
  })
  .openapi(reject, async (c) => {
    const { id } = c.req.valid('param')
    const { reason = null } = c.req.valid('json')
    return c.json(presentApproval(await decide(c.env, c.var.principal, { id, status: 'rejected', reason })), 200)
  })

type Decision = { id: string; status: 'approved' | 'rejected'; reason: string | null }

async function decide(env: Env, principal: Principal, { id, status, reason }: Decision): Promise<Approval> {
  await myApproval(env.DB, principal, id)
  const { key_id, name } = principal
  const by = { key_id, name, is_admin: hasRole(principal, 'admin') }
  const decided = await decideApproval(env.DB, { id, status, by, reason, now: Date.now() })
  if (decided.ok) {
    await tellScope(env, decided.approval)
    return decided.approval
  }
  switch (decided.reason) {
    case 'decided':
      throw conflict('already-decided', decided.detail)
    case 'expired':
      throw conflict('approval-expired', decided.detail)
    case 'skill_inactive':
      throw conflict('skill-inactive', decided.detail)
    case 'own':
      throw forbidden(decided.detail)
    case 'not_found':
      break
  }
  throw notFound(decided.detail)
}

/** The decision stands in D1, whether or not the scope can be told: one that waits has to look there by itself, too. */
async function tellScope(env: Env, { id, scope }: Approval): Promise<void> {
  try {
    await env.SCOPE.getByName(scope).approvalDecided(id)
  } catch (error) {
    warn({ message: 'a scope could not be told of a decision, it will look by itself', scope, id, error })
  }
}
