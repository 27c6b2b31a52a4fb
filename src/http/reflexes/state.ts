import { createRoute, z } from '@hono/zod-openapi'
import { coversScope } from '../../contract/principal.ts'
import { reflexState, type ReflexState, type ReflexVersion } from '../../contract/reflex.ts'
import { mergeMetrics } from '../../reflexes/metrics.ts'
import { promotable } from '../../reflexes/promotion.ts'
import { setReflexState } from '../../store/change-reflexes.ts'
import { metricsOf } from '../../store/reflex-metrics.ts'
import { guard, json, jsonRequest, problems, resource } from '../describe/describe.ts'
import { demandControl } from '../artifacts/owner-access.ts'
import { reflexAt, reflexPath } from './path.ts'
import { listedReflex, presentListed } from './schemas.ts'
import { conflict, notFound } from '../problems/refusals.ts'
import { tellScopes } from '../../artifacts/tell-scopes.ts'

const change = createRoute({
  method: 'post',
  path: '/v1/reflexes/{ref}/state',
  operationId: 'setReflexState',
  tags: ['Reflexes'],
  summary: "Change a version's state",
  description:
    'For the owner or an admin; for a version that an agent wrote, whoever operates its scope. ' +
    'Such a version must prove itself in shadow before it acts: a sequential test on its compared ' +
    'fires (72 agreements where none disagrees; 39 more for each that does), and at most 1 % of ' +
    'failed runs. `force` skips the test. Other versions keep their state.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: {
    params: reflexPath,
    body: jsonRequest(
      z.strictObject({ state: reflexState, reason: z.string().min(1).max(1000).optional(), force: z.boolean().default(false) }),
      {
        state: 'shadow',
        reason: 'to be watched for a day',
      },
    ),
  },
  responses: { 200: json(listedReflex, 'The version as it is now.'), ...problems(400, 404, 409, 413, 415) },
})

export const reflexStateRoutes = resource().openapi(change, async (c) => {
  const { state, reason = null, force } = c.req.valid('json')
  const found = await reflexAt(c.env.DB, c.req.valid('param').ref)
  demandControl(c.var.principal, { kind: 'reflex', ...found })
  if (!force) await demandProof(c.env.DB, found, state)
  const { id, version } = found
  const changed = await setReflexState(c.env.DB, { id, version, state, reason, now: Date.now() })
  if (!changed) throw notFound(`There is no reflex ${id}@${version} any more.`)
  await tellScopes(c.env, id)
  const { code: _code, ...listed } = changed
  return c.json(presentListed(listed), 200)
})

async function demandProof(db: D1Database, { id, version, state, scopes, provenance }: ReflexVersion, wanted: ReflexState): Promise<void> {
  if (wanted !== 'active' || state === 'active' || provenance.scope === null) return
  // Other tenants' scopes may run it too, on events of their own choice: they prove nothing.
  const told = (await metricsOf(db, id)).filter((row) => row.version === version && coversScope({ scopes }, row.scope))
  const shown = promotable(mergeMetrics(told.map(({ metrics }) => metrics)))
  if (shown.ok) return
  const detail =
    `The agent of ${provenance.scope} wrote ${id}@${version}, and shadow mode has not proved it: ${shown.missing.join('; ')}. ` +
    'Leave it in shadow, or send "force": true.'
  throw conflict('not-proven', detail)
}
