import { z } from '@hono/zod-openapi'
import { listReflexesFor, listSkillsFor, reflexVersionsFor, skillVersionsFor } from '../../artifacts/look-up.ts'
import { reflexId, reflexState, reflex, reflexItem } from '../../contract/reflex.ts'
import { shownCertificate } from '../../features/proof/contract/certificate.ts'
import { skillState, listedSkill, skill } from '../../contract/skill.ts'
import { templates } from '../../reflexes/templates/index.ts'
import { manifestJsonSchema } from '../../skills/manifest/manifest.ts'
import { skillId } from '../../skills/manifest/names.ts'
import { why } from '../../features/proof/evidence/certificate.ts'
import { certificatesOf } from '../../features/proof/store/certificates.ts'
import { coversScope, keyName } from '../../contract/principal.ts'
import { guard, json, problems, resource, routes } from '../describe/describe.ts'
import { paged, pageLimit, search } from '../../contract/paging.ts'
import { plainSchema } from '../body/plain-schema.ts'
import { actsOf } from '../../reflexes/promotion.ts'
import { idleOf, withActs } from './idle.ts'
import { reflexAt, reflexPath, skillAt, skillPath } from './path.ts'
import { presentListedReflex, presentListedSkill, presentSkillVersion, withTimes } from './present.ts'
import { storeOf } from '../../store/store.ts'

const reflexRoute = routes('Reflexes')
const skillRoute = routes('Skills')

const viewers = guard({ roles: ['viewer'] })
const jsonSchema = z.record(z.string(), z.unknown())

const listReflexes = reflexRoute('get /v1/reflexes', 'listReflexes', 'List reflexes, by id', {
  description:
    'The newest version of each, without its code; with `state`, the newest one in that state. A key reads the reflexes whose owners may act in a scope that it covers, those it has a licence for, and those that were published.',
  ...viewers,
  request: {
    query: z.object({
      owner: keyName.optional(),
      state: reflexState.optional(),
      q: search,
      limit: pageLimit(1000),
      cursor: reflexId.optional(),
    }),
  },
  responses: { 200: json(paged(reflexItem), 'A page.'), ...problems(400) },
})

const template = z.object({
  name: z.string(),
  description: z.string(),
  params: jsonSchema.meta({ description: 'The JSON Schema of its parameters.' }),
})
const listTemplates = reflexRoute('get /v1/reflexes/templates', 'listReflexTemplates', 'List templates', {
  description: 'Reflexes for common needs: register one with its `template` and `params` in place of code.',
  ...viewers,
  responses: { 200: json(z.object({ items: z.array(template), next_cursor: z.null() }), 'All of them.'), ...problems() },
})
const describedTemplates = templates.map(({ name, description, params }) => {
  const schema: Record<string, unknown> = plainSchema(params)
  return { name, description, params: schema }
})

const reflexWithProof = reflex.extend({
  certificates: z
    .array(shownCertificate.extend({ scope: z.string(), version: z.int() }))
    .describe('The evidence for its versions in the scopes that the key covers. Updated within seconds.'),
})

const getReflex = reflexRoute('get /v1/reflexes/{ref}', 'getReflex', 'Get a reflex', {
  ...viewers,
  request: { params: reflexPath },
  responses: {
    200: json(reflexWithProof, 'The version with its code, a list of all versions, and their certificates.'),
    ...problems(400, 404),
  },
})

const VISIBLE =
  'A key reads the skills whose owners may act in a scope that it covers; of all others only the versions whose manifest says `"scope": "org"`.'

const listSkills = skillRoute('get /v1/skills', 'listSkills', 'List skills, by id', {
  description:
    'The newest active version of each, or the newest if none is active, without its manifest; with `state`, the newest one in that state. ' +
    VISIBLE,
  ...viewers,
  request: { query: z.object({ q: search, state: skillState.optional(), limit: pageLimit(1000), cursor: skillId.optional() }) },
  responses: { 200: json(paged(listedSkill), 'A page.'), ...problems(400) },
})

const getSkillSchema = skillRoute('get /v1/skills/schema', 'getSkillSchema', "Get a manifest's JSON Schema", {
  description: 'The structure of a manifest, for editors and authors. Registration also checks that its parts fit together.',
  ...viewers,
  responses: { 200: json(jsonSchema, 'JSON Schema, draft 2020-12.'), ...problems() },
})

const getSkill = skillRoute('get /v1/skills/{ref}', 'getSkill', 'Get a skill', {
  description: VISIBLE,
  ...viewers,
  request: { params: skillPath },
  responses: { 200: json(skill, 'The version with its manifest, and a list of all versions.'), ...problems(400, 404) },
})

export const artifactListRoutes = resource()
  .openapi(listReflexes, async (c) => {
    const { items, next_cursor } = await listReflexesFor(storeOf(c.env), c.req.valid('query'), { key: c.var.principal })
    const shown = await withActs(storeOf(c.env), items, c.var.principal)
    return c.json({ items: shown.map(({ one, ...acts }) => ({ ...presentListedReflex(one), ...acts })), next_cursor }, 200)
  })
  .openapi(listTemplates, (c) => c.json({ items: describedTemplates, next_cursor: null }, 200))
  .openapi(getReflex, async (c) => {
    const { version, reads } = await reflexAt(storeOf(c.env), c.req.valid('param').ref, c.var.principal)
    const { code: content, ...found } = version
    const code = reads ? content : null
    const versions = await reflexVersionsFor(storeOf(c.env), found.id, { key: c.var.principal })
    const proofs = (await certificatesOf(storeOf(c.env), found.id)).filter(({ scope }) => coversScope(c.var.principal, scope))
    const certificates = proofs.map((proof) => ({ ...proof, why: why(proof.certificate) }))
    const more = { ...idleOf(found, proofs, Date.now()), acts: actsOf(versions), code, versions: versions.map(withTimes), certificates }
    return c.json({ ...presentListedReflex(found), ...more }, 200)
  })
  .openapi(listSkills, async (c) => {
    const { items, next_cursor } = await listSkillsFor(storeOf(c.env), c.req.valid('query'), { key: c.var.principal })
    return c.json({ items: items.map(presentListedSkill), next_cursor }, 200)
  })
  .openapi(getSkillSchema, (c) => c.json({ ...manifestJsonSchema() }, 200))
  .openapi(getSkill, async (c) => {
    const { version: found, reads } = await skillAt(storeOf(c.env), c.req.valid('param').ref, c.var.principal)
    const versions = await skillVersionsFor(storeOf(c.env), found.id, { key: c.var.principal })
    const manifest = reads ? found.manifest : null
    return c.json({ ...presentSkillVersion(found), manifest, versions: versions.map(withTimes) }, 200)
  })
