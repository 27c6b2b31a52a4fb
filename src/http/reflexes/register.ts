import { createRoute, z } from '@hono/zod-openapi'
import { hasRole } from '../../contract/principal.ts'
import { reflexId, reflexState } from '../../contract/reflex.ts'
import { createReflexVersion, type CreatedVersion } from '../../store/change-reflexes.ts'
import { findReflex } from '../../store/reflexes.ts'
import { guard, json, jsonRequest, problems, resource } from '../describe/describe.ts'
import { demandPerson } from '../artifacts/owner-access.ts'
import { reflexAt, reflexPath } from './path.ts'
import { jsonObject, receiptOf, registered } from './schemas.ts'
import { plainText, sourceFields, writtenCode } from './source.ts'
import { conflict, forbidden } from '../problems/refusals.ts'
import { tellScopes } from '../../artifacts/tell-scopes.ts'

const tags = ['Reflexes']
/** `templates` has a route of its own. */
const newId = reflexId.refine((id) => id !== 'templates', 'the id templates is taken')
const example = {
  id: 'greet',
  description: 'Answers a greeting at once.',
  code: 'function reflex(context) { return context.event.content === "hello" ? { action_type: "reply", content: "Hello!" } : null }',
}

const register = createRoute({
  method: 'post',
  path: '/v1/reflexes',
  operationId: 'registerReflex',
  tags,
  summary: 'Register a reflex, or a new version of it',
  description:
    'From `code`, or from a `template` with its `params`. The code is checked and tried on a sample context first, whose event takes the fields in `sample`, for a reflex that ' +
    'reads those of a type of its own. The same code and description as the newest version change nothing. Only the owner adds versions; an admin may.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: {
    body: jsonRequest(
      z.strictObject({
        id: newId,
        ...sourceFields,
        description: plainText(1000).optional(),
        state: reflexState.exclude(['retired']).default('active'),
        sample: jsonObject.default({}),
      }),
      example,
    ),
  },
  responses: {
    200: json(registered, 'It was there already, and stays as it is.'),
    201: json(registered, 'The new version.'),
    ...problems(400, 409, 413, 415),
  },
})

const copy = createRoute({
  method: 'post',
  path: '/v1/reflexes/{ref}/copy',
  operationId: 'copyReflex',
  tags,
  summary: 'Copy a reflex',
  description: 'To an artifact of your own under a new id, as a draft. It remembers what it was copied from, and does not follow it.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: { params: reflexPath, body: jsonRequest(z.strictObject({ id: newId }), { id: 'my-greet' }) },
  responses: { 201: json(registered, 'The copy.'), ...problems(400, 404, 409, 413, 415) },
})

export const reflexRegisterRoutes = resource()
  .openapi(register, async (c) => {
    const { principal } = c.var
    const { id, description, state, sample, ...source } = c.req.valid('json')
    demandPerson(principal)
    const { template, ...written } = await writtenCode(source, sample)
    const created = await createReflexVersion(c.env.DB, {
      ...written,
      id,
      description: description ?? written.description,
      state,
      owner: principal.name,
      owner_id: principal.key_id,
      scopes: principal.scopes,
      provenance: { by: principal.name, scope: null, template, origin: null },
      may_take_over: hasRole(principal, 'admin'),
      now: Date.now(),
    })
    if (!created.ok) throw refusalOf(created)
    if (created.created) await tellScopes(c.env, id)
    return created.created ? c.json(receiptOf(created.version), 201) : c.json(receiptOf(created.version), 200)
  })
  .openapi(copy, async (c) => {
    const { principal } = c.var
    const { id } = c.req.valid('json')
    demandPerson(principal)
    const { code, hash, description, ...origin } = await reflexAt(c.env.DB, c.req.valid('param').ref)
    if (await findReflex(c.env.DB, id)) throw taken(id)
    const created = await createReflexVersion(c.env.DB, {
      id,
      code,
      hash,
      description,
      state: 'draft',
      owner: principal.name,
      owner_id: principal.key_id,
      scopes: principal.scopes,
      provenance: { by: principal.name, scope: null, template: null, origin: { id: origin.id, version: origin.version, hash } },
      now: Date.now(),
    })
    // It came to be between the look and the copy.
    if (!created.ok || !created.created) throw taken(id)
    return c.json(receiptOf(created.version), 201)
  })

const taken = (id: string) => conflict('id-taken', `There is a reflex ${id} already. Copy it under another id.`)

function refusalOf({ reason, detail }: Extract<CreatedVersion, { ok: false }>) {
  switch (reason) {
    case 'not_owner':
      return forbidden(detail)
    case 'too_many_versions':
      break
  }
  return conflict('too-many-versions', detail)
}
