import type { FullInbox } from '../../contract/scope-api.ts'
import { Problem, type ProblemOptions, fromZod } from '../../contract/problem.ts'
import type { FieldError } from '../../base/check-json.ts'
import type { z } from '@hono/zod-openapi'
import type { ValidationTargets } from 'hono'

const kinds = {
  'bad-signature': [401, 'Bad signature'],
  'binding-missing': [500, 'Binding missing'],
  'body-cut-short': [400, 'Body cut short'],
  'body-too-large': [413, 'Body too large'],
  'event-too-large': [413, 'Event too large'],
  'decision-failed': [502, 'Decision failed'],
  'decision-pending': [504, 'Decision pending'],
  forbidden: [403, 'Forbidden'],
  'inbox-full': [429, 'Inbox full'],
  internal: [500, 'Internal error'],
  'invalid-event': [400, 'Invalid event'],
  'invalid-request': [400, 'Invalid request'],
  'invalid-scope': [400, 'Invalid scope'],
  'invalid-utf8': [400, 'Not UTF-8'],
  'malformed-body': [400, 'Malformed body'],
  'method-not-allowed': [405, 'Method not allowed'],
  'no-key-configured': [401, 'Not authenticated'],
  'not-found': [404, 'Not found'],
  'too-many-connections': [429, 'Too many connections'],
  'too-many-requests': [429, 'Too many requests'],
  'stale-delivery': [401, 'Stale delivery'],
  unauthenticated: [401, 'Not authenticated'],
  unavailable: [503, 'Temporarily unavailable'],
  'unknown-type': [400, 'Unknown event type'],
  'unsupported-media-type': [415, 'Unsupported media type'],
  'upgrade-required': [426, 'Upgrade required'],
  'wrong-event-count': [400, 'Wrong number of events'],
} as const
type ProblemKind = keyof typeof kinds

export function refusal(kind: ProblemKind, detail: string, more: Pick<ProblemOptions, 'errors' | 'extension' | 'headers'> = {}): Problem {
  const [status, title] = kinds[kind]
  return new Problem({ status, type: `urn:reflex:problem:${kind}`, title, detail, ...more })
}

export const invalid = (detail: string, errors?: FieldError[]): Problem => refusal('invalid-request', detail, { errors })
export const notFound = (detail: string): Problem => refusal('not-found', detail)
export const forbidden = (detail: string, errors?: FieldError[]): Problem => refusal('forbidden', detail, { errors })
export const conflict = (kind: string, detail: string): Problem =>
  new Problem({ status: 409, type: `urn:reflex:problem:${kind}`, title: 'Conflict', detail })

/** A limit was reached; the caller may retry after `retry_s` seconds. */
export const tooMany = (kind: 'too-many-requests' | 'too-many-connections' | 'inbox-full', detail: string, retry_s: number): Problem =>
  refusal(kind, detail, { headers: { 'Retry-After': String(retry_s) } })

export function inboxFull(scope: string, { depth, limit, rows }: FullInbox): Problem {
  if (rows) {
    const spent = `${scope} has written ${rows.limit} rows today, the limit of its budget. None was accepted; send them again tomorrow.`
    return tooMany('inbox-full', spent, Math.ceil((rows.until - Date.now()) / 1000))
  }
  const detail = `The inbox of ${scope} holds ${depth} of ${limit} events and has no room for these. None was accepted; send them again later.`
  return tooMany('inbox-full', detail, 5)
}

export const unavailable = (detail: string, extension: Record<string, unknown> = {}): Problem =>
  refusal('unavailable', detail, { extension, headers: { 'Retry-After': '5' } })

type RefusalReason<Output> = { target: keyof ValidationTargets } & ({ success: true; data: Output } | { success: false; error: z.ZodError })

/** The hook of every route: what does not fit its schema is refused, naming each place. */
export function refuseInvalid<Output>(judged: RefusalReason<Output>): Output {
  if (judged.success) return judged.data
  const errors = fromZod(judged.error)
  const where = { json: 'body', query: 'query', param: 'path', header: 'header', cookie: 'cookie', form: 'form' }[judged.target]
  const { path = '', message = '' } = errors[0] ?? {}
  const others = errors.length > 1 ? ` \`errors\` lists ${errors.length - 1} more.` : ''
  throw invalid(`The ${where} is not valid: ${path === '' ? '' : `${path}: `}${message}.${others}`, errors)
}
