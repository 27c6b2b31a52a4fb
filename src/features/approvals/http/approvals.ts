import type { Context } from 'hono'
import type { JsonFields } from '../../../base/json.ts'
import { withIso } from '../../../base/time.ts'
import { warn } from '../../../base/warn.ts'
import { changedInputs, verdictOf, type StoredApproval } from '../../../contract/approval.ts'
import { approve, find, list, listRules, reject, steps } from '../operations/approvals.ts'
import { offeredRules } from './offered-rules.ts'
import { coversScope, hasRole, type Principal } from '../../../contract/principal.ts'
import type { Env } from '../../../env.ts'
import { decideApproval, findApproval, listApprovals } from '../store/approvals.ts'
import type { AuthEnv } from '../../../http/auth/middleware.ts'
import { resource, serve } from '../../../http/describe/operation.ts'
import { listed } from '../../../http/describe/paging.ts'
import { conflict, forbidden, invalid, notFound } from '../../../http/problems/refusals.ts'
import { validTraceparent } from '../../../events/traceparent.ts'
import { storeOf } from '../../../store/store.ts'

type ApprovalDecisionRequest = {
  params: { id: string }
  body: { reason?: string | undefined; edits?: Record<string, unknown> | undefined }
}
const deciding =
  (status: 'approved' | 'rejected') =>
  async (c: Context<AuthEnv>, { params: { id }, body }: ApprovalDecisionRequest) =>
    present(await decide(c.env, c.var.principal, { id, status, ...body, traceparent: c.req.header('traceparent') }))

export const approvalRoutes = resource().openapiRoutes([
  serve(list, async (c, { query: { cursor: before, ...query } }) => {
    const found = await listApprovals(storeOf(c.env), { ...query, patterns: c.var.principal.scopes, before, now: Date.now() })
    return listed(found, { present, cursor: ({ created_at, id }) => ({ at: created_at, id }) })
  }),
  serve(listRules, async (c) => {
    const { scope, principal } = c.var
    const of = { scope, patterns: principal.scopes, before: undefined, limit: MOST_LOOKED_AT, now: Date.now() }
    const found = await Promise.all((['approved', 'rejected'] as const).map((status) => listApprovals(storeOf(c.env), { ...of, status })))
    const decided = found.flatMap(({ items }) => items).toSorted((one, other) => other.created_at - one.created_at)
    const { settings } = await c.env.SCOPE.getByName(scope).state()
    return { items: offeredRules(decided, settings.trusted_text) }
  }),
  serve(find, async (c, { params: { id } }) => present(await covered(c.env, c.var.principal, id))),
  serve(steps, async (c, { params: { id } }) => {
    const { scope, kind, status } = await covered(c.env, c.var.principal, id)
    const waits = kind === 'run' && status === 'pending'
    return { items: waits ? await c.env.SCOPE.getByName(scope).approvalSteps(id) : [] }
  }),
  serve(approve, deciding('approved')),
  serve(reject, deciding('rejected')),
])

/** The decided questions, of each kind, that rules are made from. */
const MOST_LOOKED_AT = 200

/** Approvals outside the key's scopes read as not found. */
async function covered(env: Env, principal: Principal, id: string): Promise<StoredApproval> {
  const found = await findApproval(storeOf(env), id, Date.now())
  if (!found || !coversScope(principal, found.scope)) throw notFound(`There is no approval ${id} in the scopes of this key.`)
  return found
}

const present = ({ run, ...rest }: StoredApproval) => ({
  ...withIso(rest, ['created_at', 'expires_at', 'decided_at']),
  run: run && withIso(run, ['ended_at']),
})

/** A decision by a key, as on the routes above. */
type ApprovalOutcome = {
  id: string
  status: 'approved' | 'rejected'
  reason?: string | null | undefined
  edits?: Record<string, unknown> | undefined
  traceparent: string | undefined
}

export async function decide(
  env: Env,
  principal: Principal,
  { id, status, reason, edits: given, traceparent }: ApprovalOutcome,
): Promise<StoredApproval> {
  const found = await covered(env, principal, id)
  if (status === 'approved') await demandCurrent(env, found)
  const edits = given ? changedInputs(found, given) : null
  if (edits) await demandFitting(env, found, edits)
  const { key_id, name } = principal
  const by = { key_id, name, is_admin: hasRole(principal, 'admin') }
  const decided = await decideApproval(storeOf(env), {
    id,
    status,
    by,
    reason: reason ?? null,
    edits,
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
async function demandCurrent(env: Env, { id, scope, kind, status }: StoredApproval): Promise<void> {
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

/** The scope checks an edit: it knows the schema and the secrets. The gate runs again later. */
async function demandFitting(env: Env, { id, scope, status }: StoredApproval, edits: JsonFields): Promise<void> {
  if (status !== 'pending') return
  const flaw = await env.SCOPE.getByName(scope).approvalFlaw(id, edits)
  if (flaw !== null) throw invalid(`The edit is refused: ${flaw}.`)
}

const refusedBy = {
  decided: (detail: string) => conflict('already-decided', detail),
  expired: (detail: string) => conflict('approval-expired', detail),
  skill_inactive: (detail: string) => conflict('skill-inactive', detail),
  own: forbidden,
  not_found: notFound,
}

/** The decision is durable in D1: a scope that is unreachable finds it when it polls. */
async function notify(env: Env, approval: StoredApproval): Promise<void> {
  const { id, scope } = approval
  try {
    await env.SCOPE.getByName(scope).approvalDecided(id, verdictOf(approval) ?? undefined)
  } catch (error) {
    warn({ message: 'failed to notify a scope of a decision; it will poll', scope, id, error })
  }
}
