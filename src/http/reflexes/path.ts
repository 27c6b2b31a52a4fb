import { z } from '@hono/zod-openapi'
import { reflexId, type ReflexVersion } from '../../contract/reflex.ts'
import { findReflex } from '../../store/reflexes.ts'
import { refPath, type Ref } from '../artifacts/version-path.ts'
import { notFound } from '../problems/refusals.ts'

const version = z
  .string()
  .regex(/^[1-9]\d{0,5}$/)
  .transform(Number)

export const reflexPath = refPath({ kind: 'reflex', without: 'the newest version', id: reflexId, version })

/** The newest version unless one is named. */
export async function reflexAt(db: D1Database, { id, version }: Ref<number>): Promise<ReflexVersion> {
  const found = await findReflex(db, id, version)
  if (!found) throw notFound(`There is no reflex ${version === undefined ? id : `${id}@${version}`}.`)
  return found
}
