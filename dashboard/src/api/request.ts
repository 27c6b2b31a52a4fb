import { signal } from '@preact/signals'
import { addressOf } from '../../../src/contract/address.ts'
import { answered, unanswered } from './away.ts'
import { failed, problemFrom, type Answer } from './problem.ts'
import { endSession, keyInUse } from './session.ts'

type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
type RequestOptions = { body?: unknown; signal?: AbortSignal; headers?: Record<string, string>; patience_ms?: number }

const PATIENCE_MS = 30_000
/** Counts what this page changed of approvals and dead letters. */
export const changes = signal(0)
const COUNTED = /^\/v1\/(?:approvals|dlq)\//

/** A part of a path: a scope may contain slashes. */
export const part = (name: string): string => encodeURIComponent(name)

/** The address of a request: fields that its path does not name are in the query. */
export function address(at: string, fields: Readonly<Record<string, string | number | null | undefined>> = {}): string {
  const { path, rest } = addressOf(at, fields)
  return path + query(Object.fromEntries(rest) as typeof fields)
}

/** A query string with its question mark, without parameters that are not set. */
export function query(parameters: Record<string, string | number | boolean | null | undefined>): string {
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== '')
  return set.length === 0 ? '' : `?${new URLSearchParams(set.map(([name, value]) => [name, String(value)])).toString()}`
}

/** A call of the API with the key of the session. `Value` is a type of `src/contract`. */
export async function request<Value>(method: HttpMethod, path: string, options: RequestOptions = {}): Promise<Answer<Value>> {
  const answer = await requestText(method, path, options)
  if (!answer.ok) return answer
  return { ok: true, value: (answer.value === '' ? undefined : JSON.parse(answer.value)) as Value }
}

/** As `request`, for answers that are not one JSON document. */
export async function requestText(method: HttpMethod, path: string, options: RequestOptions = {}): Promise<Answer<string>> {
  const key = keyInUse()
  const { body, signal, headers, patience_ms = PATIENCE_MS } = options
  const patience = AbortSignal.timeout(patience_ms)
  try {
    const response = await fetch(path, {
      method,
      headers: { Authorization: `Bearer ${key}`, ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: signal ? AbortSignal.any([signal, patience]) : patience,
    })
    const text = await response.text()
    answered()
    if (response.ok && method !== 'GET' && COUNTED.test(path)) changes.value += 1
    if (response.ok) return { ok: true, value: text }
    const problem = problemFrom(response.status, text)
    if (response.status === 401 && key === keyInUse()) endSession(problem.detail)
    return { ok: false, problem }
  } catch {
    if (signal?.aborted) return failed('Stopped', 'The request is no longer needed.')
    if (patience.aborted) return failed('No answer', `The server did not answer within ${patience_ms / 1000} s.`)
    unanswered()
    return failed('The server does not answer', 'The page tries again until it does.')
  }
}

export const get = <Value>(path: string, signal?: AbortSignal): Promise<Answer<Value>> =>
  request<Value>('GET', path, signal ? { signal } : {})
export const post = <Value>(path: string, body?: unknown, signal?: AbortSignal): Promise<Answer<Value>> =>
  request<Value>('POST', path, { body, ...(signal && { signal }) })
