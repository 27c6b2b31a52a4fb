import { z } from '@hono/zod-openapi'

/** What a path names as `id` or `id@version`. */
export type Ref<Version> = { id: string; version?: Version }

/** Ids hold no `@`, so that the first one divides them. `without` says what an id alone stands for. */
export function refPath<Version>({ kind, without, id, version }: RefParts<Version>) {
  const ref = z.string().transform((text, judged): Ref<Version> => {
    const at = text.indexOf('@')
    const name = id.safeParse(at === -1 ? text : text.slice(0, at))
    const number = at === -1 ? null : version.safeParse(text.slice(at + 1))
    if (name.success && number === null) return { id: name.data }
    if (name.success && number?.success) return { id: name.data, version: number.data }
    judged.addIssue({ code: 'custom', message: `name a ${kind} by its id, or one of its versions as id@version` })
    return z.NEVER
  })
  return z.object({ ref: ref.openapi({ description: `An id, which stands for ${without}, or \`id@version\`.`, type: 'string' }) })
}

type RefParts<Version> = { kind: string; without: string; id: z.ZodType<string>; version: z.ZodType<Version> }
