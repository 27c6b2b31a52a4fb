import { listReflexesFor, listSkillsFor, reflexVersionsFor, skillVersionsFor } from '../../artifacts/look-up.ts'
import { find, list, listTemplates } from '../../contract/operations/reflexes.ts'
import { templates } from '../../reflexes/templates/index.ts'
import { manifestJsonSchema } from '../../skills/manifest/manifest.ts'
import * as skills from '../../contract/operations/skills.ts'
import { why } from '../../evidence/certificate.ts'
import { certificatesOf } from '../../features/proof/store/certificates.ts'
import { coversScope } from '../../contract/principal.ts'
import { plainSchema } from '../../contract/plain-schema.ts'
import { resource } from '../describe/describe.ts'
import { serve } from '../describe/operation.ts'
import { actsOf } from '../../reflexes/promotion.ts'
import { idleOf, withActs } from './idle.ts'
import { reflexAt, skillAt } from './path.ts'
import { presentListedReflex, presentListedSkill, presentSkillVersion, withTimes } from './present.ts'
import { storeOf } from '../../store/store.ts'

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
    return { ...presentSkillVersion(found), manifest, versions: versions.map(withTimes) }
  }),
])
