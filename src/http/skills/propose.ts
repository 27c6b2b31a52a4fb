import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { baseRoles, hasRole } from '../../contract/principal.ts'
import { bulletin, proposalResult, type Bulletin, type ProposalReport } from '../../contract/skill.ts'
import type { ProposalCaller } from '../../contract/scope-api.ts'
import { traceContextOf } from '../../events/traceparent.ts'
import { proposeSkillInput, type Proposal } from '../../skills/asp/parse.ts'
import type { AuthEnv } from '../auth/middleware.ts'
import { guard, json, jsonRequest, jsonText, problems, resource, routes, scopePath } from '../describe/describe.ts'
import { described, plainSchema } from '../body/plain-schema.ts'
import { refuseInvalid } from '../problems/refusals.ts'

const route = routes('Skills')
const body = proposeSkillInput.extend({ dry_run: z.boolean().default(false).describe('Only evaluates the gate; nothing runs.') })

const proposal = route('post /v1/scopes/{scope}/skills/propose', 'proposeSkill', 'Propose to run a skill', {
  description:
    "The gate decides, based on the manifest, the scope's settings and the roles of the key: compat, preconditions, score, policy, in this order. An allowed proposal runs immediately, " +
    'and the response holds its result. A `traceparent` header sets the trace of the run; otherwise a new one is created. Use `trace_id` to find the run in the log.',
  ...guard({ roles: ['publisher'], scoped: true, body: 'json' }),
  request: {
    params: scopePath,
    body: jsonRequest(described<z.input<typeof body>>(plainSchema(body)), {
      skill_id: 'incident.open',
      inputs: { title: 'a burst of failed logins' },
      why: 'open an incident',
    }),
  },
  responses: { 200: json(proposalResult, 'The decision and the result.'), ...problems(400, 413, 415) },
})

const show = route('get /v1/scopes/{scope}/bulletin', 'getBulletin', 'Show the bulletin of skills a model would get', {
  description:
    "At most five active skills that fit the scope and the conversation, best first, based on the scope's settings `project`, `env`, `toolset`, `repo` and `goal_labels`, on the `entity_types` of the events in its context, and on recently successful runs.",
  ...guard({ roles: ['viewer'], scoped: true }),
  request: {
    params: scopePath,
    query: z.object({
      text: z.string().max(10_000).default('').meta({ description: 'Text of the conversation.', example: 'deploy the latest to staging' }),
    }),
  },
  responses: { 200: json(bulletin, 'The bulletin.'), ...problems(400) },
})

export const proposeSkillRoutes = resource()
  .openapi(proposal, async (c) => {
    const { dry_run, ...proposal } = refuseInvalid({ target: 'json', ...body.safeParse(await c.req.json()) })
    return jsonText<ProposalReport>(await propose(c, proposal, { from: 'caller', dry_run }))
  })
  .openapi(show, async (c) => jsonText<Bulletin>(await c.env.SCOPE.getByName(c.var.scope).bulletin(c.req.valid('query').text)))

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
