import { validate as isUuid } from 'uuid'
import { z } from 'zod'
import { scopeName, TRACE_ID } from '../../core/event.ts'
import { accountId } from '../../features/market/contract/transfer.ts'
import type { Flag } from '../shown.ts'
import { pageLimit } from '../paging.ts'

export const idPath = z.object({ id: z.string().min(1).max(128) })
/** An item that the path names by its id. */
export const byId = <Item extends z.ZodType>(item: Item, says: string) =>
  ({ params: idPath, answers: { 200: [item, says] }, problems: [404] }) as const

/** A decision on the item that the path names, with a reason. Its state may refuse it. */
export const decidedById = <Item extends z.ZodType, Body extends z.ZodType>(item: Item, says: string, body: Body) =>
  ({ ...byId(item, says), problems: [404, 409], body }) as const
/** `why`: where the reason is kept. */
export const reasonFlag = (why = 'for the record'): Flag => ['--reason <text>', `why, ${why}`]

/** Fields of tools over MCP. */
export const toolScope = z.string().min(1).max(128).describe('The name of a scope, such as team-a/web.')
export const toolPage = {
  limit: z.int().min(1).max(100).default(20),
  cursor: z.string().max(200).optional().describe('The next_cursor of the page before.'),
}
export const toolTime = z.iso.datetime({ offset: true }).optional()

export const scopePath = z.object({ scope: scopeName.describe('Percent-encoded: `team-a/x` is `team-a%2Fx`.') })

/** For lists of what an account takes part in, by its place. */
export const accountQuery = z.object({
  account: accountId,
  limit: pageLimit(100),
  cursor: z
    .string()
    .regex(/^\d{1,15}$/)
    .optional(),
})

/** A UUID stands for its 32 hex digits, as in an event. */
export const traceId = z
  .string()
  .overwrite((text) => (isUuid(text) ? text.replaceAll('-', '').toLowerCase() : text))
  .regex(...TRACE_ID)

export const instant = z.iso
  .datetime({ offset: true, error: 'a time is ISO 8601 with its zone, such as 2026-11-21T05:00:00Z' })
  .transform((time) => new Date(time).toISOString())

/** `id` or `id@version` in a path. */
export type VersionRef<Version> = { id: string; version?: Version }
type RefParts<Version> = { kind: string; without: string; id: z.ZodType<string>; version: z.ZodType<Version> }

/** Ids contain no `@`, so the first one is the separator. `without` describes an id alone. */
export function refPath<Version>({ kind, without, id, version }: RefParts<Version>) {
  const ref = z.string().transform((text, judged): VersionRef<Version> => {
    const at = text.indexOf('@')
    const name = id.safeParse(at === -1 ? text : text.slice(0, at))
    const number = at === -1 ? null : version.safeParse(text.slice(at + 1))
    if (name.success && number === null) return { id: name.data }
    if (name.success && number?.success) return { id: name.data, version: number.data }
    judged.addIssue({ code: 'custom', message: `name a ${kind} by its id, or one of its versions as id@version` })
    return z.NEVER
  })
  return z.object({ ref: ref.describe(`An id, meaning ${without}, or \`id@version\`.`) })
}
