import { z } from '@hono/zod-openapi'
import { setReflexState, setSkillState, shareReflex } from '../../artifacts/kinds.ts'
import { reflexVersionsFor, skillVersionsFor } from '../../artifacts/look-up.ts'
import { revokeLicences } from '../../artifacts/revoke.ts'
import type { ArtifactKind } from '../../contract/artifact.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import type { Changed } from '../../artifacts/registry.ts'
import { reflexSharing, reflexState, listedReflex } from '../../contract/reflex.ts'
import { skillState, type SkillVersion, skillVersion as changedSkill } from '../../contract/skill.ts'
import type { Principal } from '../../contract/principal.ts'
import { guard, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { conflict, invalid, notFound } from '../problems/refusals.ts'
import { actsOf } from '../../reflexes/promotion.ts'
import { demandControl } from './owner-access.ts'
import { reflexAt, reflexPath, skillAt, skillPath } from './path.ts'
import { presentListedReflex, presentSkillVersion } from './present.ts'
import { warn } from '../../base/warn.ts'
import { demandProof } from './proof.ts'
import { demandTests } from './skill-tests.ts'
import { storeOf } from '../../store/store.ts'

const reflexRoute = routes('Reflexes')
const skillRoute = routes('Skills')

/** Versions that a refusal names. */
const MOST_NAMED = 10
const operators = guard({ roles: ['operator'], body: 'json' })
const reason = z.string().min(1).max(1000).optional()

const changedReflex = listedReflex.extend({
  changed: z.boolean().describe('False if it was in that state already.'),
  acts: z.int().nullable().describe('The version that acts where a chain follows the reflex; null: none does.'),
})

const ofReflex = reflexRoute('post /v1/reflexes/{ref}/state', 'setReflexState', "Change a version's state", {
  description:
    'For the owner and admins; for a version that an agent wrote, the operators of its scope. ' +
    'Such a version must prove itself in shadow before it acts: a sequential test on its compared ' +
    'fires of each event type (72 agreements where none disagrees, 118 for actions that reach outside), ' +
    'and at most 1 % of failed runs. A version whose actions can be neither undone nor repeated ' +
    'is always refused. `force` skips the test. Other versions keep their state.',
  ...operators,
  request: {
    params: reflexPath,
    body: jsonRequest(z.strictObject({ state: reflexState, reason, force: z.boolean().default(false) }), {
      state: 'shadow',
      reason: 'to be watched for a day',
    }),
  },
  responses: { 200: json(changedReflex, 'The changed version.'), ...problems(400, 404, 409, 413, 415) },
})

const sharing = reflexRoute('post /v1/reflexes/{ref}/sharing', 'shareReflex', 'Publish a version, or take that back', {
  description:
    '`org`: all keys may read it, and the chain of each scope may name it. `project`: as everything that is registered, for the keys and scopes that share a scope with its owner. ' +
    'Chains of others lose it within seconds. For the owner and admins; for a version that an agent wrote, the operators of its scope.',
  ...operators,
  request: { params: reflexPath, body: jsonRequest(z.strictObject({ sharing: z.enum(reflexSharing) }), { sharing: 'org' }) },
  responses: { 200: json(listedReflex, 'The version.'), ...problems(400, 404, 413, 415) },
})

const ofSkill = skillRoute('post /v1/skills/{ref}/state', 'setSkillState', "Change a version's state", {
  description:
    'For the owner and admins; for a version that an agent made, the operators of its scope. A candidate becomes `active` or `deprecated`, an active version `deprecated`, and a deprecated ' +
    'one `active` again; none becomes a candidate. Name the version if there are several. The scopes follow within seconds. ' +
    'A version becomes active only if it passed its tests, which are run first if they never were. `force` with a `reason` activates it anyway: both are kept in `provenance`.',
  ...operators,
  request: {
    params: skillPath,
    body: jsonRequest(z.strictObject({ state: skillState, reason, force: z.boolean().default(false) }), {
      state: 'active',
      reason: 'it is needed',
    }),
  },
  responses: { 200: json(changedSkill, 'The changed version.'), ...problems(400, 404, 409, 413, 415) },
})

export const artifactStateRoutes = resource()
  .openapi(ofReflex, async (c) => {
    const { state, reason: why = null, force } = c.req.valid('json')
    const { version: found } = await reflexAt(storeOf(c.env), c.req.valid('param').ref, c.var.principal)
    demandControl(c.var.principal, { kind: 'reflex', ...found })
    const now = Date.now()
    if (!force) await demandProof(storeOf(c.env), found, { wanted: state, now })
    const { id, version } = found
    const { code: _code, ...listed } = changed(await setReflexState(storeOf(c.env), { id, version, state, reason: why, now }))
    await notifyScopes(c.env, id)
    const ends = state !== 'active' && (state !== 'shadow' || found.state === 'active')
    if (found.sealed && ends) await revokeLicences(c.env, revocationOf('reflex', listed))
    const acts = actsOf(await reflexVersionsFor(storeOf(c.env), id, { key: c.var.principal }))
    return c.json({ ...presentListedReflex(listed), changed: found.state !== state, acts }, 200)
  })
  .openapi(sharing, async (c) => {
    const { version: found } = await reflexAt(storeOf(c.env), c.req.valid('param').ref, c.var.principal)
    demandControl(c.var.principal, { kind: 'reflex', ...found })
    const shared = { ...found, ...c.req.valid('json') }
    await shareReflex(storeOf(c.env), shared)
    await notifyScopes(c.env, found.id)
    const { code: _code, ...listed } = shared
    return c.json(presentListedReflex(listed), 200)
  })
  .openapi(ofSkill, async (c) => {
    const { state, reason: why = null, force } = c.req.valid('json')
    const { ref } = c.req.valid('param')
    const { version: found } = await skillAt(storeOf(c.env), ref, c.var.principal)
    demandControl(c.var.principal, { kind: 'skill', ...found })
    if (ref.version === undefined) await demandOneVersion(storeOf(c.env), found, c.var.principal)
    const { id, version } = found
    const now = Date.now()
    const { name: by } = c.var.principal
    const forced = force && state === 'active' ? { by, reason: demandReason(why), at: now } : null
    if (state === 'active' && found.state !== 'active' && !forced) await demandTests(c, found)
    const after = changed(await setSkillState(storeOf(c.env), { id, version, state, reason: why, forced, now }))
    if (found.sealed && state === 'deprecated') await revokeLicences(c.env, revocationOf('skill', after))
    if (forced) warn({ message: 'a skill was activated without passing tests', id, version, by, reason: forced.reason })
    return c.json(presentSkillVersion(after), 200)
  })

const revocationOf = (kind: ArtifactKind, { id, version, hash, state }: Revoked) => ({
  artifact: `${kind}:${id}@${version}`,
  hash,
  reason: `${id}@${version} is ${state}`,
})
type Revoked = { id: string; version: string | number; hash: string; state: string }

const codes = { not_allowed: 'state-not-allowed', too_many_active: 'too-many-active', not_tested: 'not-tested' }

function changed<Version>(answer: Changed<Version>): Version {
  if (answer.ok) return answer.version
  throw answer.reason === 'not_found' ? notFound(answer.detail) : conflict(codes[answer.reason], answer.detail)
}

function demandReason(why: string | null): string {
  if (why === null) throw invalid('A forced change needs a reason.', [{ path: 'reason', message: 'is required with force' }])
  return why
}

/** The meaning of an id alone changes as soon as there is a newer version. */
async function demandOneVersion(db: D1Database, { id, version }: SkillVersion, key: Principal): Promise<void> {
  const versions = await skillVersionsFor(db, id, { key })
  if (versions.length <= 1) return
  const named = versions.slice(0, MOST_NAMED).map((one) => `${one.version} (${one.state})`)
  throw conflict(
    'several-versions',
    `The skill ${id} has several versions: name one, as in ${id}@${version}. There are ${named.join(', ')}.`,
  )
}
