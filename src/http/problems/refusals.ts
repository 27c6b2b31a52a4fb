import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Event } from '../../core/event.ts'
import { Problem } from '../../contract/problem.ts'
import { type FieldError } from '../../base/check-json.ts'

export const invalid = (detail: string, errors?: FieldError[]): Problem =>
  new Problem({ status: 400, type: 'urn:reflex:problem:invalid-request', title: 'Invalid request', detail, ...(errors ? { errors } : {}) })

export const notFound = (detail: string): Problem =>
  new Problem({ status: 404, type: 'urn:reflex:problem:not-found', title: 'Not found', detail })

export const forbidden = (detail: string, errors?: FieldError[]): Problem =>
  new Problem({ status: 403, type: 'urn:reflex:problem:forbidden', title: 'Forbidden', detail, ...(errors ? { errors } : {}) })

export const conflict = (kind: string, detail: string): Problem =>
  new Problem({ status: 409, type: `urn:reflex:problem:${kind}`, title: 'Conflict', detail })

const limits429 = {
  'too-many-requests': 'Too many requests',
  'too-many-connections': 'Too many connections',
  'inbox-full': 'Inbox full',
} as const

/** A limit was reached; the caller may retry after `retry_s` seconds. */
export const tooMany = (kind: keyof typeof limits429, detail: string, retry_s: number): Problem =>
  new Problem({
    status: 429,
    type: `urn:reflex:problem:${kind}`,
    title: limits429[kind],
    detail,
    headers: { 'Retry-After': String(retry_s) },
  })

export function inboxFull(scope: string, { depth, limit }: { depth: number; limit: number }): Problem {
  const detail = `The inbox of ${scope} holds ${depth} of ${limit} events and has no room for these. None was accepted; send them again later.`
  return tooMany('inbox-full', detail, 5)
}

export function unavailable(detail: string, extension: Record<string, unknown> = {}): Problem {
  const headers = { 'Retry-After': '5' }
  return new Problem({ status: 503, type: 'urn:reflex:problem:unavailable', title: 'Temporarily unavailable', detail, extension, headers })
}

export function demandCoverage(principal: Principal, events: readonly Pick<Event, 'scope'>[]): void {
  const index = events.findIndex(({ scope }) => !coversScope(principal, scope))
  const scope = events[index]?.scope
  if (scope === undefined) return
  const detail = `The key ${principal.name} does not cover the scope ${scope}.`
  const errors = [{ ...(events.length > 1 ? { index } : {}), path: 'scope', message: 'is not covered by the key' }]
  throw forbidden(detail, errors)
}
