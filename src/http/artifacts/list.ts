import { listReflexesFor, listSkillsFor, reflexVersionsFor, skillVersionsFor, actingReflexesFor } from '../../artifacts/look-up.ts'
import { find, list, listTemplates } from '../../contract/operations/reflexes.ts'
import { templates } from '../../reflexes/templates/index.ts'
import { manifestJsonSchema, manifestSchema } from '../../skills/manifest/manifest.ts'
import * as skills from '../../contract/operations/skills.ts'
import { why, idleSince } from '../../evidence/certificate.ts'
import { certificatesOf, certificatesOfAll } from '../../store/artifacts/certificates.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import { plainSchema } from '../../contract/plain-schema.ts'
import { resource, serve } from '../describe/operation.ts'
import { actsOf } from '../../reflexes/promotion.ts'
import { reflexAt, skillAt } from './path.ts'
import { findingsOf } from './register.ts'
import { presentListedReflex, presentListedSkill, presentSkillVersion, withTimes } from './present.ts'
import { storeOf } from '../../store/store.ts'
import type { ReflexHead } from '../../artifacts/kinds.ts'
import { iso } from '../../base/time.ts'
import type { Certificate } from '../../contract/certificate.ts'

const describedTemplates = templates.map(({ name, description, params }) => {
  const schema: Record<string, unknown> = plainSchema(params)
  return { name, description, params: schema }
})

export const artifactListRoutes = resource().openapiRoutes([
  serve(list, async (c, { query }) => {
    const { items, next_cursor } = await listReflexesFor(storeOf(c.env), query, { key: c.var.principal })
    const shown = await withActs(storeOf(c.env), items, c.var.principal)
    return { items: shown.map(({ one, ...acts }) => ({ ...presentListedReflex(one), ...acts })), next_cursor }
  }),
  serve(listTemplates, () => ({ items: describedTemplates, next_cursor: null })),
  serve(find, async (c, { params: { ref } }) => {
    const { version, reads } = await reflexAt(storeOf(c.env), ref, c.var.principal)
    const { code: content, ...found } = version
    const code = reads ? content : null
    const versions = await reflexVersionsFor(storeOf(c.env), found.id, { key: c.var.principal })
    const proofs = (await certificatesOf(storeOf(c.env), found.id)).filter(({ scope }) => coversScope(c.var.principal, scope))
    const certificates = proofs.map((proof) => ({ ...proof, why: why(proof.certificate) }))
    const more = { ...idleOf(found, proofs, Date.now()), acts: actsOf(versions), code, versions: versions.map(withTimes), certificates }
    return { ...presentListedReflex(found), ...more }
  }),
  serve(skills.list, async (c, { query }) => {
    const { items, next_cursor } = await listSkillsFor(storeOf(c.env), query, { key: c.var.principal })
    return { items: items.map(presentListedSkill), next_cursor }
  }),
  serve(skills.schema, () => ({ ...manifestJsonSchema() })),
  serve(skills.find, async (c, { params: { ref } }) => {
    const { version: found, reads } = await skillAt(storeOf(c.env), ref, c.var.principal)
    const versions = await skillVersionsFor(storeOf(c.env), found.id, { key: c.var.principal })
    const manifest = reads ? found.manifest : null
    const parsed = manifestSchema.safeParse(manifest)
    const findings = parsed.success ? findingsOf(parsed.data) : {}
    return { ...presentSkillVersion(found), manifest, ...findings, versions: versions.map(withTimes) }
  }),
])

type Idle = { since: string | null; reason: string }
type Proof = { version: number; scope: string; certificate: Certificate }
type IdleVersion = Pick<ReflexHead, 'id' | 'version' | 'state' | 'by_proof'>

/** Set if a version that acts by proof acts nowhere, by the certificates of the scopes. */
function idleOf({ version, state, by_proof }: IdleVersion, proofs: readonly Proof[], now: number): { idle?: Idle } {
  const own = state === 'active' && by_proof ? proofs.filter((proof) => proof.version === version) : []
  const idle = own.map(({ certificate }) => idleSince(certificate, now))
  const [first] = idle
  if (!first || idle.includes(null)) return {}
  return { idle: { since: first.at === null ? null : iso(first.at), reason: first.reason } }
}

/**
 * Says of each listed reflex which version acts, and of each listed version by proof whether it
 * acts in a scope that the key covers. A listed version that is active is the newest such one.
 */
async function withActs<Listed extends IdleVersion>(
  db: D1Database,
  items: readonly Listed[],
  principal: Principal,
): Promise<{ one: Listed; acts: number | null; idle?: Idle }[]> {
  const ids = items.flatMap(({ id, state, by_proof }) => (state === 'active' && by_proof ? [id] : []))
  const others = items.flatMap(({ id, state }) => (state === 'active' ? [] : [id]))
  const [proofs, acting] = await Promise.all([
    ids.length === 0 ? [] : certificatesOfAll(db, ids),
    actingReflexesFor(db, others, { key: principal }),
  ])
  const covered = Map.groupBy(
    proofs.filter(({ scope }) => coversScope(principal, scope)),
    ({ reflex_id }) => reflex_id,
  )
  const now = Date.now()
  const actsOf = ({ id, version, state }: Listed) => (state === 'active' ? version : (acting.get(id) ?? null))
  return items.map((one) => ({ one, acts: actsOf(one), ...idleOf(one, covered.get(one.id) ?? [], now) }))
}
