import type { AnswerOf, AnyOperation } from '../../src/contract/operation.ts'
import { GAPS, type PageGaps } from '../../src/contract/lists/packs.ts'
import type { OperationFields } from '../../src/contract/shown.ts'
import type { Page } from '../../src/contract/scope-api.ts'
import { otherServer, type Request } from '../lib/api.ts'
import type { Session } from './session.ts'

/** `api` connects on first use. */
export type Asking = Pick<Session, 'api' | 'signal'>
type Given = { path?: readonly string[] | undefined; fields?: OperationFields | undefined }

/** The request of an operation. `path`: the values of the parts of its path, in order. */
export function requestOf(
  { at, query, body }: Pick<AnyOperation, 'at' | 'query' | 'body'>,
  { path = [], fields = {} }: Given,
): Request & { address: string } {
  const [method, template = ''] = at.split(' ')
  const values = [...path]
  const place = template.replaceAll(/\{\w+\}/g, () => encodeURIComponent(values.shift() ?? ''))
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  const isAsked = ([name]: [string, unknown]) => !body || name in (query?.shape ?? {})
  const search = new URLSearchParams(given.filter(isAsked).map(([name, value]) => [name, String(value)])).toString()
  return {
    address: search === '' ? place : `${place}?${search}`,
    method: method?.toUpperCase() as NonNullable<Request['method']>,
    ...(body && { body: Object.fromEntries(given.filter((field) => !isAsked(field))) }),
  }
}

/** Sends an operation. The server's answer has the shape that the declaration says. */
export function ask<Op extends AnyOperation>({ api, signal }: Asking, op: Op, given: Given = {}): Promise<AnswerOf<Op['answers']>> {
  const { address, ...request } = requestOf(op, given)
  return api().json(address, { ...request, signal })
}

type Listed<Op extends AnyOperation> = Extract<AnswerOf<Op['answers']>, { items: readonly unknown[] }>['items'][number]
type Size = { limit: number; most: number }

/** Follows the cursors of a list until `limit` items are there. `most`: the API's largest page. */
export async function askPages<Op extends AnyOperation>(
  asking: Asking,
  op: Op,
  { limit, most, path, fields }: Given & Size,
): Promise<Page<Listed<Op>>> {
  const items: Listed<Op>[] = []
  const gaps: PageGaps = {}
  let cursor: string | undefined
  for (;;) {
    const page = await ask(asking, op as AnyOperation, { path, fields: { ...fields, limit: Math.min(most, limit - items.length), cursor } })
    const { items: found, next_cursor, ...lacks } = page as unknown as Page<Listed<Op>>
    if (!Array.isArray(found)) throw otherServer(op.at)
    items.push(...found)
    for (const name of GAPS) if (lacks[name]) gaps[name] = [...new Set([...(gaps[name] ?? []), ...lacks[name]])]
    if (next_cursor === null || items.length >= limit) return { items, next_cursor, ...gaps }
    cursor = next_cursor
  }
}
