import { createRoute, z } from '@hono/zod-openapi'
import { proposeSkillInput } from '../../skills/asp/parse.ts'
import { guard, json, jsonRequest, jsonText, problems, resource, scopePath } from '../describe/describe.ts'
import { described, plainSchema } from '../describe/plain-schema.ts'
import { propose } from './propose-to-scope.ts'
import { refuseInvalid } from '../problems/refuse-invalid.ts'

const body = proposeSkillInput.extend({
  dry_run: z.boolean().default(false).meta({ description: 'Only the gate decides; nothing runs.' }),
})
const text = z.string()
const result = z
  .looseObject({
    status: z.enum(['ok', 'refused', 'clarify', 'needs_approval', 'partial_failure', 'failed', 'unknown']),
    reason: text.nullable(),
    outputs: z.record(text, z.unknown()),
    questions: z.array(z.object({ slot: text, question: text })),
    approval_id: text.nullable(),
    decision: z.looseObject({
      verdict: text,
      stages: z.array(z.looseObject({ stage: text, verdict: z.enum(['passed', 'failed', 'not_reached']), reason: text.nullable() })),
      score: z.number().nullable(),
      tau: z.number().nullable(),
      to_pass: z.array(text),
    }),
    steps: z.array(z.object({ index: z.int(), tool: text, status: text, duration_ms: z.number() })),
    compensation: z.array(z.looseObject({ tool: text, status: text })),
    idempotent: z.boolean().meta({ description: 'Nothing ran: the outputs are from an earlier run.' }),
    dry_run: z.boolean().meta({
      description: 'Nothing ran, whatever the status: `ok` means that the gate would allow it.',
    }),
    trace_id: text,
  })
  .openapi('ProposalResult')

const proposal = createRoute({
  method: 'post',
  path: '/v1/scopes/{scope}/skills/propose',
  operationId: 'proposeSkill',
  tags: ['Skills'],
  summary: 'Propose to run a skill',
  description:
    "The gate decides by the manifest, the scope's settings and the roles of the key: compat, preconditions, score, policy, in this order. An allowed skill runs at once, and the response has its result. " +
    'The run joins the trace of a `traceparent` header, or starts a new one; search the log for `trace_id`.',
  ...guard({ roles: ['publisher'], scoped: true, body: 'json' }),
  request: {
    params: scopePath,
    body: jsonRequest(described<z.input<typeof body>>(plainSchema(body)), {
      skill_id: 'incident.open',
      inputs: { title: 'a burst of failed logins' },
      why: 'open an incident',
    }),
  },
  responses: { 200: json(result, 'The decision and the result.'), ...problems(400, 413, 415) },
})

export const proposeSkillRoutes = resource().openapi(proposal, async (c) => {
  const { dry_run, ...proposal } = refuseInvalid({ target: 'json', ...body.safeParse(await c.req.json()) })
  return jsonText<z.infer<typeof result>>(await propose(c, proposal, { from: 'caller', dry_run }))
})
