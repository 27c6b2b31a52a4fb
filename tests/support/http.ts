import { createExecutionContext } from 'cloudflare:test'
import { env, exports } from 'cloudflare:workers'
import { expect } from 'vitest'
import type { Env } from '../../src/env.ts'
import { app } from './worker.ts'
import type * as Main from './worker.ts'

declare global {
  namespace Cloudflare {
    interface GlobalProps {
      mainModule: typeof Main
    }
  }
}

export type Call = {
  method?: string
  key?: string | null
  json?: unknown
  body?: BodyInit
  type?: string | null
  headers?: Record<string, string>
}
/** `body` is what JSON.parse made of the text: tests look at it as they please. */
export type Answer = { status: number; type: string; headers: Headers; body: ReturnType<JSON['parse']>; text: string }

export const adminKey = 'test-admin-key'

export function request(path: string, { method, key = adminKey, json, body, type, headers }: Call = {}): Request {
  const text = json === undefined ? body : JSON.stringify(json)
  const sent = new Headers(headers)
  if (key !== null) sent.set('Authorization', `Bearer ${key}`)
  if (type !== null && text !== undefined) sent.set('Content-Type', type ?? 'application/json')
  const built = new Request(`https://reflex.test${path}`, {
    method: method ?? (text === undefined ? 'GET' : 'POST'),
    headers: sent,
    ...(text === undefined ? {} : { body: text }),
  })
  // A string brings its own Content-Type.
  if (type === null) built.headers.delete('Content-Type')
  return built
}

/** As `fetch`, for a client. */
export const workerFetch: typeof fetch = (input, init) => exports.default.fetch(new Request(input, init))
export const fetchRaw = (path: string, call?: Call): Promise<Response> => exports.default.fetch(request(path, call))

/** The whole answer; a body that is JSON is parsed. */
export async function call(path: string, options?: Call): Promise<Answer> {
  return answerOf(await fetchRaw(path, options))
}

/** With some of the bindings replaced: for what happens when they fail. */
export async function callWith(bindings: { [Name in keyof Env]?: unknown }, path: string, options?: Call): Promise<Answer> {
  return answerOf(await app.fetch(request(path, options), Object.assign({}, env, bindings), createExecutionContext()))
}

export async function answerOf(response: Response): Promise<Answer> {
  const type = response.headers.get('Content-Type') ?? ''
  const text = new TextDecoder().decode(await response.arrayBuffer())
  return {
    status: response.status,
    type,
    headers: response.headers,
    text,
    body: type.includes('json') && !type.includes('ndjson') ? JSON.parse(text) : null,
  }
}

/** A key made by the admin. */
export async function keyFor(roles: string[], scopes: string[] = ['*'], name = roles.join('-')): Promise<string> {
  const { body } = await call('/v1/keys', { json: { name, roles, scopes } })
  return String(body.key)
}

export const message = (fields: Record<string, unknown> = {}) => ({
  type: 'ws.message',
  connection_id: 'alice',
  content: 'hello',
  ...fields,
})
export const scopePath = (scope: string, rest = ''): string => `/v1/scopes/${encodeURIComponent(scope)}${rest}`

/** The matcher of a response with this problem. */
export const problem = (status: number, kind?: string): object => ({
  status,
  type: 'application/problem+json',
  body: {
    type: kind === undefined ? expect.stringMatching(/^urn:reflex:problem:/) : `urn:reflex:problem:${kind}`,
    title: expect.any(String),
    status,
    detail: expect.any(String),
  },
})
