import { createRoute, z } from '@hono/zod-openapi'
import { skillState, type SkillVersion } from '../../contract/skill.ts'
import { setSkillState } from '../../store/change-skills.ts'
import { listSkillVersions } from '../../store/skills.ts'
import { guard, json, jsonRequest, problems, resource } from '../describe/describe.ts'
import { demandControl } from '../artifacts/owner-access.ts'
import { conflict, notFound } from '../problems/refusals.ts'
import { skillAt, skillPath } from './path.ts'
import { changedSkill, presentVersion } from './schemas.ts'

/** How many versions a refusal names. */
const MOST_NAMED = 10

const change = createRoute({
  method: 'post',
  path: '/v1/skills/{ref}/state',
  operationId: 'setSkillState',
  tags: ['Skills'],
  summary: "Change a version's state",
  description:
    'By the owner or an admin; of what an agent made, by who operates its scope. A candidate becomes `active` or `deprecated`, an active version `deprecated`, and a deprecated one ' +
    '`active` again; none becomes a candidate. The version has to be named where there are several. The scopes follow within seconds.',
  ...guard({ roles: ['operator'], body: 'json' }),
  request: {
    params: skillPath,
    body: jsonRequest(z.strictObject({ state: skillState, reason: z.string().min(1).max(1000).optional() }), {
      state: 'active',
      reason: 'it passed its tests',
    }),
  },
  responses: { 200: json(changedSkill, 'The version as it is now.'), ...problems(400, 404, 409, 413, 415) },
})

export const skillStateRoutes = resource().openapi(change, async (c) => {
  const { state, reason = null } = c.req.valid('json')
  const { ref } = c.req.valid('param')
  const found = await skillAt(c.env.DB, ref)
  demandControl(c.var.principal, { kind: 'skill', ...found })
  if (ref.version === undefined) await demandOneVersion(c.env.DB, found)
  const { id, version } = found
  const changed = await setSkillState(c.env.DB, { id, version, state, reason, now: Date.now() })
  if (changed.ok) return c.json(presentVersion(changed.version), 200)
  throw refusalOf(changed)
})

function refusalOf({ reason, detail }: Extract<Awaited<ReturnType<typeof setSkillState>>, { ok: false }>) {
  switch (reason) {
    case 'not_found':
      return notFound(detail)
    case 'not_allowed':
      return conflict('state-not-allowed', detail)
    case 'too_many_active':
      break
  }
  return conflict('too-many-active', detail)
}

/** Whoever changes a state has one version in mind: an id alone would stand for another one as soon as there is a newer. */
async function demandOneVersion(db: D1Database, { id, version }: SkillVersion): Promise<void> {
  const versions = await listSkillVersions(db, id)
  if (versions.length <= 1) return
  const named = versions.slice(0, MOST_NAMED).map((one) => `${one.version} (${one.state})`)
  throw conflict(
    'several-versions',
    `The skill ${id} has several versions: name one, as in ${id}@${version}. There are ${named.join(', ')}.`,
  )
}
