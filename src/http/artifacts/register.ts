import { z } from '@hono/zod-openapi'
import { registerReflex, registerSkill } from '../../artifacts/kinds.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import { storedReflex } from '../../artifacts/platform.ts'
import type { RegisterResult } from '../../artifacts/registry.ts'
import { reflexId, reflexSharing, reflexState, type ReflexVersion, registeredReflex } from '../../contract/reflex.ts'
import { wayToAct } from '../../reflexes/promotion.ts'
import { hashManifest, manifestSchema } from '../../skills/manifest/manifest.ts'
import { hasRole, type Principal } from '../../contract/principal.ts'
import { withComputing } from '../auth/computing.ts'
import { guard, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { described, plainSchema } from '../body/plain-schema.ts'
import { conflict, forbidden } from '../problems/refusals.ts'
import { jsonObject, plainText, sourceFields, writtenCode } from './reflex-source.ts'
import { checkedManifest, demandArguments } from './skill-source.ts'
import { demandPerson } from './owner-access.ts'
import { reflexAt, reflexPath } from './path.ts'
import { receiptOf } from './present.ts'
import { registeredSkill } from '../../contract/skill.ts'
import { readable } from './sealed.ts'
import { storeOf } from '../../store/store.ts'

const reflexRoute = routes('Reflexes')
const skillRoute = routes('Skills')

const operators = guard({ roles: ['operator'], body: 'json' })
/** `templates` is a route. */
const newReflexId = reflexId.refine((id) => id !== 'templates', 'the id templates is taken')

const register = reflexRoute('post /v1/reflexes', 'registerReflex', 'Register a reflex, or a new version of it', {
  description:
    'From `code`, or from a `template` with its `params`. The code is checked and run on a sample context first; fields in `sample` override those of its event, ' +
    'for a reflex that reads fields of its own event type. The same code and description as the newest version change nothing. Only the owner and admins add versions.',
  ...operators,
  request: {
    body: jsonRequest(
      z.strictObject({
        id: newReflexId,
        ...sourceFields,
        description: plainText(1000).optional(),
        sharing: z.enum(reflexSharing).default('project').describe('`org` publishes it: all keys may read it, all chains may name it.'),
        state: reflexState.exclude(['retired']).default('active'),
        sample: jsonObject.default({}),
      }),
      {
        id: 'greet',
        description: 'Answers a greeting at once.',
        code: 'function reflex(context) { return context.event.content === "hello" ? { action_type: "reply", content: "Hello!" } : null }',
      },
    ),
  },
  responses: {
    200: json(registeredReflex, 'It existed already and is unchanged.'),
    201: json(registeredReflex, 'The new version.'),
    ...problems(400, 409, 413, 415),
  },
})

const copy = reflexRoute('post /v1/reflexes/{ref}/copy', 'copyReflex', 'Copy a reflex', {
  description: 'Creates a reflex of your own under a new id, as a draft. It records its origin, and does not follow it.',
  ...operators,
  request: { params: reflexPath, body: jsonRequest(z.strictObject({ id: newReflexId }), { id: 'my-greet' }) },
  responses: { 201: json(registeredReflex, 'The copy.'), ...problems(400, 404, 409, 413, 415) },
})

const exampleManifest: z.input<typeof manifestSchema> = {
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

const registerManifest = skillRoute('post /v1/skills', 'registerSkill', 'Register a version of a skill', {
  description:
    'The body is its manifest, with an `id` and a semantic `version`. A version never changes: the same content again changes nothing, other content under the same version is ' +
    'rejected. It is a candidate until its state is changed. The whole manifest is checked, and all errors are returned at once, including tools that no ' +
    'agent of this deployment has. Tools whose names begin with `http.` or `mcp.` belong to scopes, which may have none yet: the gate refuses where a scope lacks them, and names what to declare. If scopes of your key have the `http.` tools, the arguments must fit those of one of them. Only the owner and admins add versions.',
  ...operators,
  request: {
    query: z.object({
      tools: z.enum(['known', 'any']).default('known').meta({
        description: '`any`: accept tools and probes that do not exist. The gate refuses to run the skill until they do.',
      }),
    }),
    body: jsonRequest(described<z.input<typeof manifestSchema>>(plainSchema(manifestSchema)), exampleManifest),
  },
  responses: {
    200: json(registeredSkill, 'It existed already and is unchanged.'),
    201: json(registeredSkill, 'The new version.'),
    ...problems(400, 409, 413, 415),
  },
})

export const artifactRegisterRoutes = resource()
  .openapi(register, async (c) => {
    const { id, description, state, sharing, sample, ...source } = c.req.valid('json')
    const contributor = contributorOf(c.var.principal)
    const { template, ...written } = await withComputing(c.var.principal, (computing) => writtenCode(source, sample, computing))
    const provenance = { by: contributor.owner, scope: null, template, origin: null }
    const draft = { ...written, ...contributor, id, description: description ?? written.description, state, sharing, provenance }
    const { version, created } = taken(await registerReflex(storeOf(c.env), draft))
    if (created) await notifyScopes(c.env, id)
    return created ? c.json(reflexReceipt(version), 201) : c.json(reflexReceipt(version), 200)
  })
  .openapi(copy, async (c) => {
    const { id } = c.req.valid('json')
    const contributor = { ...contributorOf(c.var.principal), may_take_over: false }
    const found = await reflexAt(storeOf(c.env), c.req.valid('param').ref, c.var.principal)
    const { code, hash, description, ...of } = readable('reflex', found)
    const isTaken = conflict('id-taken', `The reflex ${id} exists already. Copy it under another id.`)
    if (await storedReflex(storeOf(c.env), id)) throw isTaken
    const provenance = { by: contributor.owner, scope: null, template: null, origin: { id: of.id, version: of.version, hash } }
    const created = await registerReflex(storeOf(c.env), { ...contributor, id, code, hash, description, state: 'draft', provenance })
    // Another call may have registered the id in between.
    if (!created.ok || !created.created) throw isTaken
    return c.json(reflexReceipt(created.version), 201)
  })
  .openapi(registerManifest, async (c) => {
    const contributor = contributorOf(c.var.principal)
    const { tools } = c.req.valid('query')
    const manifest = checkedManifest(await c.req.json(), tools, c.var.agents.agents)
    if (tools === 'known') await demandArguments(c.env, manifest, contributor.scopes)
    const draft = { ...contributor, manifest, hash: await hashManifest(manifest), provenance: { by: contributor.owner, scope: null } }
    const { version, created } = taken(await registerSkill(storeOf(c.env), draft))
    return created ? c.json(receiptOf(version), 201) : c.json(receiptOf(version), 200)
  })

const reflexReceipt = (version: ReflexVersion) => ({
  ...receiptOf(version),
  next: wayToAct({ ...version, by_agent: version.provenance.scope !== null }),
})

function contributorOf(principal: Principal) {
  demandPerson(principal)
  const { name, key_id, scopes } = principal
  return { owner: name, owner_id: key_id, scopes, may_take_over: hasRole(principal, 'admin'), now: Date.now() }
}

const codes = { other_content: 'version-taken', too_many_versions: 'too-many-versions' }

function taken<Version>(registered: RegisterResult<Version>): Extract<RegisterResult<Version>, { ok: true }> {
  if (registered.ok) return registered
  const { reason, detail } = registered
  throw reason === 'not_owner' ? forbidden(detail) : conflict(codes[reason], detail)
}
