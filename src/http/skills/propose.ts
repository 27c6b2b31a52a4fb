import type { Context } from 'hono'
import { baseRoles, hasRole } from '../../contract/principal.ts'
import type { ProposalCaller } from '../../contract/scope-api.ts'
import { traceContextOf } from '../../events/traceparent.ts'
import type { Proposal } from '../../skills/asp/parse.ts'
import { showBulletin } from '../../contract/operations/skills.ts'
import { propose as proposeSkill } from '../../skills/operations.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { jsonText, resource, serve } from '../describe/operation.ts'

export const proposeSkillRoutes = resource().openapiRoutes([
  serve(proposeSkill, async (c, { body: { dry_run, ...proposal } }) => jsonText(await propose(c, proposal, { from: 'caller', dry_run }))),
  serve(showBulletin, async (c, { query: { text } }) => jsonText(await c.env.SCOPE.getByName(c.var.scope).bulletin(text))),
])

/** Proposes a run with the roles of the key; returns the JSON of a ProposalResult. */
export function propose(
  { env, req, var: { scope, principal } }: Pick<Context<AuthEnv>, 'env' | 'req' | 'var'>,
  proposal: Proposal,
  { from, dry_run, traceparent, call_id }: Pick<ProposalCaller, 'from' | 'dry_run' | 'call_id'> & { traceparent?: string | undefined },
): Promise<string> {
  // Policies name roles; implied roles count as held.
  const roles = Array.from(new Set([...principal.roles, ...baseRoles.filter((role) => hasRole(principal, role))]))
  const { name, key_id } = principal
  const trace = traceContextOf(traceparent) ?? traceContextOf(req.header('traceparent'), req.header('tracestate'))
  return env.SCOPE.getByName(scope).propose(proposal, { call_id, name, key_id, from, roles, dry_run, trace })
}
