import type { Context } from 'hono'
import type { AuthEnv } from '../auth/middleware.ts'
import { baseRoles, hasRole } from '../../contract/principal.ts'
import { traceContextOf } from '../../contract/traceparent.ts'
import type { Proposal } from '../../skills/asp/parse.ts'

/** Has the scope decide on a proposal with the roles of the key, and run it where it may: the JSON of a ProposalResult. */
export function propose(
  { env, req, var: { scope, principal } }: Pick<Context<AuthEnv>, 'env' | 'req' | 'var'>,
  proposal: Proposal,
  { from, dry_run }: { from: 'caller' | 'model'; dry_run: boolean },
): Promise<string> {
  // A skill's policy names roles as a key may hold them; those that a role implies are held, too.
  const roles = Array.from(new Set([...principal.roles, ...baseRoles.filter((role) => hasRole(principal, role))]))
  const { name, key_id } = principal
  const trace = traceContextOf(req.header('traceparent'))
  return env.SCOPE.getByName(scope).propose(proposal, { name, key_id, from, roles, dry_run, trace })
}
