import { z } from '@hono/zod-openapi'
import { lookUpReflex, lookUpSkill, type LookedUp } from '../../artifacts/look-up.ts'
import { reflexId, type ReflexVersion } from '../../contract/reflex.ts'
import type { SkillVersion } from '../../contract/skill.ts'
import { skillId, skillVersion } from '../../skills/manifest/names.ts'
import type { Principal } from '../../contract/principal.ts'
import { notFound } from '../problems/refusals.ts'

/** `id` or `id@version` in a path. */
type Ref<Version> = { id: string; version?: Version }
type RefParts<Version> = { kind: string; without: string; id: z.ZodType<string>; version: z.ZodType<Version> }

/** Ids contain no `@`, so the first one is the separator. `without` describes an id alone. */
function refPath<Version>({ kind, without, id, version }: RefParts<Version>) {
  const ref = z.string().transform((text, judged): Ref<Version> => {
    const at = text.indexOf('@')
    const name = id.safeParse(at === -1 ? text : text.slice(0, at))
    const number = at === -1 ? null : version.safeParse(text.slice(at + 1))
    if (name.success && number === null) return { id: name.data }
    if (name.success && number?.success) return { id: name.data, version: number.data }
    judged.addIssue({ code: 'custom', message: `name a ${kind} by its id, or one of its versions as id@version` })
    return z.NEVER
  })
  return z.object({ ref: ref.openapi({ description: `An id, meaning ${without}, or \`id@version\`.`, type: 'string' }) })
}

const count = z
  .string()
  .regex(/^[1-9]\d{0,5}$/)
  .transform(Number)

export const reflexPath = refPath({ kind: 'reflex', without: 'the newest version', id: reflexId, version: count })
export const skillPath = refPath({
  kind: 'skill',
  without: 'the newest active version, or the newest one if none is active',
  id: skillId,
  version: skillVersion,
})

/** Among the versions that the key may know of. */
export const reflexAt = async (db: D1Database, ref: Ref<number>, key: Principal): Promise<LookedUp<ReflexVersion>> =>
  (await lookUpReflex(db, ref, { key })) ?? missing('reflex', ref)

export const skillAt = async (db: D1Database, ref: Ref<string>, key: Principal): Promise<LookedUp<SkillVersion>> =>
  (await lookUpSkill(db, ref, { key })) ?? missing('skill', ref)

function missing(kind: string, { id, version }: Ref<string | number>): never {
  throw notFound(`There is no ${kind} ${version === undefined ? id : `${id}@${version}`}.`)
}
