import { lookUpReflex, lookUpSkill, type LookedUp } from '../../artifacts/look-up.ts'
import type { VersionRef } from '../../contract/operations/shared.ts'
import type { ReflexVersion } from '../../contract/reflex.ts'
import type { SkillVersion } from '../../contract/skill.ts'
import type { Principal } from '../../contract/principal.ts'
import { notFound } from '../problems/refusals.ts'

/** Among the versions that the key may know of. */
export const reflexAt = async (db: D1Database, ref: VersionRef<number>, key: Principal): Promise<LookedUp<ReflexVersion>> =>
  (await lookUpReflex(db, ref, { key })) ?? missing('reflex', ref)

export const skillAt = async (db: D1Database, ref: VersionRef<string>, key: Principal): Promise<LookedUp<SkillVersion>> =>
  (await lookUpSkill(db, ref, { key })) ?? missing('skill', ref)

function missing(kind: string, { id, version }: VersionRef<string | number>): never {
  throw notFound(`There is no ${kind} ${version === undefined ? id : `${id}@${version}`}.`)
}
