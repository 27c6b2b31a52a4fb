import { setReflexState, setSkillState, shareReflex } from '../../artifacts/kinds.ts'
import { reflexVersionsFor, skillVersionsFor } from '../../artifacts/look-up.ts'
import type { ArtifactKind } from '../../contract/artifact.ts'
import type { EndedVersion } from '../../events/deployment.ts'
import { notifyScopes } from '../../artifacts/notify.ts'
import type { Changed } from '../../artifacts/registry.ts'
import { setState, share } from '../../contract/operations/reflexes.ts'
import type { SkillVersion } from '../../contract/skill.ts'
import type { Principal } from '../../contract/principal.ts'
import { setState as setStateOfSkill } from '../../contract/operations/skills.ts'
import { resource, serve } from '../describe/operation.ts'
import { conflict, invalid, notFound } from '../problems/refusals.ts'
import { actsOf } from '../../reflexes/promotion.ts'
import { demandControl } from './owner-access.ts'
import { reflexAt, skillAt } from './path.ts'
import { presentListedReflex, presentSkillVersion } from './present.ts'
import { warn } from '../../base/warn.ts'
import { versionEnded } from './version-ended.ts'
import { demandProof } from './proof.ts'
import { demandTests } from './skill-tests.ts'
import { storeOf } from '../../store/store.ts'

/** Versions that a refusal names. */
const MOST_NAMED = 10

export const artifactStateRoutes = resource().openapiRoutes([
  serve(setState, async (c, { params: { ref }, body: { state, reason: why = null, force } }) => {
    const { version: found } = await reflexAt(storeOf(c.env), ref, c.var.principal)
    demandControl(c.var.principal, { kind: 'reflex', ...found })
    const now = Date.now()
    if (!force) await demandProof(storeOf(c.env), found, { wanted: state, now })
    const { id, version } = found
    const { code: _code, ...listed } = changed(await setReflexState(storeOf(c.env), { id, version, state, reason: why, now }))
    await notifyScopes(c.env, id)
    const ends = state !== 'active' && (state !== 'shadow' || found.state === 'active')
    if (found.sealed && ends) await versionEnded(c, endOf('reflex', listed))
    const acts = actsOf(await reflexVersionsFor(storeOf(c.env), id, { key: c.var.principal }))
    return { ...presentListedReflex(listed), changed: found.state !== state, acts }
  }),
  serve(share, async (c, { params: { ref }, body }) => {
    const { version: found } = await reflexAt(storeOf(c.env), ref, c.var.principal)
    demandControl(c.var.principal, { kind: 'reflex', ...found })
    const shared = { ...found, ...body }
    await shareReflex(storeOf(c.env), shared)
    await notifyScopes(c.env, found.id)
    const { code: _code, ...listed } = shared
    return presentListedReflex(listed)
  }),
  serve(setStateOfSkill, async (c, { params: { ref }, body: { state, reason: why = null, force } }) => {
    const { version: found } = await skillAt(storeOf(c.env), ref, c.var.principal)
    demandControl(c.var.principal, { kind: 'skill', ...found })
    if (ref.version === undefined) await demandOneVersion(storeOf(c.env), found, c.var.principal)
    const { id, version } = found
    const now = Date.now()
    const { name: by } = c.var.principal
    const forced = force && state === 'active' ? { by, reason: demandReason(why), at: now } : null
    if (state === 'active' && found.state !== 'active' && !forced) await demandTests(c, found)
    const after = changed(await setSkillState(storeOf(c.env), { id, version, state, reason: why, forced, now }))
    if (found.sealed && state === 'deprecated') await versionEnded(c, endOf('skill', after))
    if (forced) warn({ message: 'a skill was activated without passing tests', id, version, by, reason: forced.reason })
    return presentSkillVersion(after)
  }),
])

const endOf = (kind: ArtifactKind, { id, version, hash, state }: Stopped): EndedVersion => ({
  artifact: `${kind}:${id}@${version}`,
  hash,
  reason: `${id}@${version} is ${state}`,
})
type Stopped = { id: string; version: string | number; hash: string; state: string }

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
