import { z } from '@hono/zod-openapi'
import { withIso } from '../../base/time.ts'
import { warn } from '../../base/warn.ts'
import { approval, approvalStatus, decisionReason, verdictOf, type Approval } from '../../contract/control-plane/approval.ts'
import { coversScope, hasRole, type Principal } from '../../contract/principal.ts'
import { scopeName } from '../../core/event.ts'
import type { Env } from '../../env.ts'
import { decideApproval, findApproval, listApprovals } from '../../store/approvals.ts'
import { guard, idPath, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { byAge, paged } from '../../contract/paging.ts'
import { listed } from '../describe/paging.ts'
import { conflict, forbidden, notFound } from '../problems/refusals.ts'
import { validTraceparent } from '../../events/traceparent.ts'
import { storeOf } from '../../store/store.ts'

const route = routes('Approvals')

const list = route('get /v1/approvals', 'listApprovals', 'List approvals, newest first', {
  description: 'Pending and decided approvals in the scopes that the key covers.',
  ...guard({ roles: ['operator'] }),
  request: { query: byAge({ status: approvalStatus.optional(), scope: scopeName.optional() }) },
  responses: { 200: json(paged(approval), 'A page.'), ...problems(400) },
})

const find = route('get /v1/approvals/{id}', 'getApproval', 'Get an approval', {
  ...guard({ roles: ['operator'] }),
  request: { params: idPath },
  responses: { 200: json(approval, 'The approval.'), ...problems(400, 404) },
})

const decision = {
  ...guard({ roles: ['operator'], body: 'optional' }),
  request: {
    params: idPath,
    body: jsonRequest(z.strictObject({ reason: decisionReason.optional() }), { reason: 'checked with the team' }),
  },
  responses: { 200: json(approval, 'The updated approval.'), ...problems(400, 404, 409, 413, 415) },
}

const approve = route('post /v1/approvals/{id}/approve', 'approveRun', 'Approve a run of a skill', {
  ...decision,
  description:
    'Allows one run of that version with those inputs. The first decision wins; expired approvals cannot be decided. Four-eyes principle: the key that proposed the run ' +
    "cannot approve it, unless it has the role admin or the manifest's `policy.self_approval` allows it. Inactive versions cannot be approved, nor a reflex whose evidence has changed since it was shown. The body is optional.",
})

const reject = route('post /v1/approvals/{id}/reject', 'rejectRun', 'Reject a run of a skill', {
  ...decision,
  description:
    "The skill does not run, and the scope's log records the reason. The proposer may reject it to withdraw it. The body is optional.",
})

export const approvalRoutes = resource()
  .openapi(list, async (c) => {
    const { cursor: before, ...query } = c.req.valid('query')
    const found = await listApprovals(storeOf(c.env), { ...query, patterns: c.var.principal.scopes, before, now: Date.now() })
    return c.json(listed(found, { present, cursor: ({ created_at, id }) => ({ at: created_at, id }) }), 200)
  })
  .openapi(find, async (c) => c.json(present(await covered(c.env, c.var.principal, c.req.valid('param').id)), 200))
  .openapi(approve, async (c) => {
    const which = {
      ...c.req.valid('param'),
      status: 'approved' as const,
      reason: c.req.valid('json').reason ?? null,
      traceparent: c.req.header('traceparent'),
    }
    return c.json(present(await decide(c.env, c.var.principal, which)), 200)
  })
  .openapi(reject, async (c) => {
    const which = {
      ...c.req.valid('param'),
      status: 'rejected' as const,
      reason: c.req.valid('json').reason ?? null,
      traceparent: c.req.header('traceparent'),
    }
    return c.json(present(await decide(c.env, c.var.principal, which)), 200)
  })

/** Approvals outside the key's scopes read as not found. */
export async function covered(env: Env, principal: Principal, id: string): Promise<Approval> {
  const found = await findApproval(storeOf(env), id, Date.now())
  if (!found || !coversScope(principal, found.scope)) throw notFound(`There is no approval ${id} in the scopes of this key.`)
  return found
}

const present = ({ run, ...rest }: Approval) => ({
  ...withIso(rest, ['created_at', 'expires_at', 'decided_at']),
  run: run && withIso(run, ['ended_at']),
})

/** A decision by a key, as on the routes above. */
type Decision = { id: string; status: 'approved' | 'rejected'; reason: string | null; traceparent: string | undefined }

export async function decide(env: Env, principal: Principal, { id, status, reason, traceparent }: Decision): Promise<Approval> {
  const found = await covered(env, principal, id)
  if (status === 'approved') await demandCurrent(env, found)
  const { key_id, name } = principal
  const by = { key_id, name, is_admin: hasRole(principal, 'admin') }
  const decided = await decideApproval(storeOf(env), {
    id,
    status,
    by,
    reason,
    traceparent: validTraceparent(traceparent),
    now: Date.now(),
  })
  if (!decided.ok) throw refusedBy[decided.reason](decided.detail)
  await notify(env, decided.approval)
  return decided.approval
}

/**
 * An approval of a reflex is bound to the evidence that was shown. An unreachable scope looks
 * again before it applies the decision.
 */
async function demandCurrent(env: Env, { id, scope, kind, status }: Approval): Promise<void> {
  if (kind !== 'promotion' || status !== 'pending') return
  const changed = await env.SCOPE.getByName(scope)
    .approvalOutdated(id)
    .catch((error: unknown) => {
      warn({ message: 'failed to ask a scope whether its evidence is current; it will look itself', scope, id, error })
      return null
    })
  if (changed === null) return
  const detail = `The evidence has changed since it was shown: ${changed}. If the action is proven again, the scope asks again.`
  throw conflict('evidence-changed', detail)
}

const refusedBy = {
  decided: (detail: string) => conflict('already-decided', detail),
  expired: (detail: string) => conflict('approval-expired', detail),
  skill_inactive: (detail: string) => conflict('skill-inactive', detail),
  own: forbidden,
  not_found: notFound,
}

/** The decision is durable in D1: a scope that is unreachable finds it when it polls. */
async function notify(env: Env, approval: Approval): Promise<void> {
  const { id, scope } = approval
  try {
    await env.SCOPE.getByName(scope).approvalDecided(id, verdictOf(approval) ?? undefined)
  } catch (error) {
    warn({ message: 'failed to notify a scope of a decision; it will poll', scope, id, error })
  }
}
