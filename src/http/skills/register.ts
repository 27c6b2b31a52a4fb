import { createRoute, z } from '@hono/zod-openapi'
import { hasRole } from '../../contract/principal.ts'
import { hashManifest, manifestSchema } from '../../skills/manifest/manifest.ts'
import { registerSkill, type RegisteredSkill } from '../../store/change-skills.ts'
import { guard, json, jsonRequest, problems, resource } from '../describe/describe.ts'
import { demandPerson } from '../artifacts/owner-access.ts'
import { described, plainSchema } from '../describe/plain-schema.ts'
import { conflict, forbidden } from '../problems/refusals.ts'
import { receiptOf, registeredSkill } from './schemas.ts'
import { checkedManifest } from './source.ts'

const example: z.input<typeof manifestSchema> = {
  id: 'network.block',
  version: '1.0.0',
  owner: 'team-security',
  description: 'Blocks an address that attacks',
  signature: {
    inputs: [
      { name: 'address', type: 'string', required: true },
      { name: 'reason', type: 'string', required: true },
    ],
  },
  plan: {
    budget: { max_cost_usd: 0.01, max_latency_ms: 5000 },
    steps: [{ tool: 'block', args: { address: '{{address}}', reason: '{{reason}}' }, timeout_ms: 3000 }],
  },
  activation: { keywords_any: ['block', 'attacker'], score_weights: { keyword_hit: 1 }, tau: 1 },
  policy: { allow_roles: ['operator'] },
}

const register = createRoute({
  method: 'post',
  path: '/v1/skills',
  operationId: 'registerSkill',
  tags: ['Skills'],
  summary: 'Register a version of a skill',
  description:
    'The body is its manifest, with an `id` and a semantic `version`, which never changes: the same content again changes nothing, other content under the same version is ' +
    'refused. It is a candidate until its state is changed. All of the manifest is checked, and all that is wrong is told at once: also whether the tools it names are tools of ' +
    'an agent of this deployment. Names that begin with `http.` or `mcp.` are those of scopes, and not checked: where a scope does not have them, the gate refuses and says what to declare. Only the owner adds versions; an admin may.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: {
    query: z.object({
      tools: z.enum(['known', 'any']).default('known').meta({
        description:
          '`any`: register it though it names tools, or calls probes, that are not there. The gate refuses to run it until they are.',
      }),
    }),
    body: jsonRequest(described<z.input<typeof manifestSchema>>(plainSchema(manifestSchema)), example),
  },
  responses: {
    200: json(registeredSkill, 'It was there already, and stays as it is.'),
    201: json(registeredSkill, 'The new version.'),
    ...problems(400, 409, 413, 415),
  },
})

export const skillRegisterRoutes = resource().openapi(register, async (c) => {
  const { principal } = c.var
  demandPerson(principal)
  const manifest = checkedManifest(await c.req.json(), c.req.valid('query').tools, c.var.agents.agents)
  const registered = await registerSkill(c.env.DB, {
    manifest,
    hash: await hashManifest(manifest),
    owner: principal.name,
    owner_id: principal.key_id,
    scopes: principal.scopes,
    provenance: { by: principal.name, scope: null },
    may_take_over: hasRole(principal, 'admin'),
    now: Date.now(),
  })
  if (!registered.ok) throw refusalOf(registered)
  return registered.created ? c.json(receiptOf(registered.version), 201) : c.json(receiptOf(registered.version), 200)
})

function refusalOf({ reason, detail }: Extract<RegisteredSkill, { ok: false }>) {
  switch (reason) {
    case 'not_owner':
      return forbidden(detail)
    case 'other_content':
      return conflict('version-taken', detail)
    case 'too_many_versions':
      break
  }
  return conflict('too-many-versions', detail)
}
