import { z } from '@hono/zod-openapi'
import type { ReflexVersion } from '../protocol/reflex.ts'
import { findReflex } from '../store/reflexes.ts'
import { notFound } from './refusals.ts'

const REF = /^([A-Za-z0-9][A-Za-z0-9._:-]{0,127})(?:@([1-9]\d{0,5}))?$/

export type ReflexRef = { id: string; version?: number }

export const reflexPath = z.object({
  ref: z
    .string()
    .regex(REF, 'name a reflex by its id, or one of its versions as id@version')
    .transform((text): ReflexRef => {
      const [, id = '', version] = REF.exec(text) ?? []
      return version === undefined ? { id } : { id, version: Number(version) }
    })
    .openapi({ description: 'An id, which stands for the newest version, or `id@version`.', type: 'string', pattern: REF.source }),
})

/** The newest version unless one is named. */
export async function reflexAt(db: D1Database, { id, version }: ReflexRef): Promise<ReflexVersion> {
  const found = await findReflex(db, id, version)
  if (!found) throw notFound(`There is no reflex ${version === undefined ? id : `${id}@${version}`}.`)
  return found
}
