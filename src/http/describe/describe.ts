import { OpenAPIHono } from '@hono/zod-openapi'
import type { AnyOperation } from '../../contract/operation.ts'
import { problem } from '../../contract/problem.ts'
import { requires, scopeParam, scopeQuery, type AuthEnv } from '../auth/middleware.ts'
import { fileBody, jsonBody, optionalJsonBody, reportBody } from '../body/body.ts'

export const resource = () => new OpenAPIHono<AuthEnv>()

const bodies = {
  json: [jsonBody],
  optional: [optionalJsonBody],
  defaulted: [optionalJsonBody],
  report: [reportBody],
  file: [fileBody],
  own: [],
}

/** Checks and documents the access to a route in one place. */
export function accessOf({ roles, scoped, body, takes = 'json' }: AnyOperation) {
  if (!roles) return { middleware: [], security: [] }
  const scope = { none: [], path: [scopeParam], query: [scopeQuery] }[scoped === true ? 'path' : (scoped ?? 'none')]
  return { middleware: [requires(...roles), ...scope, ...(body ? bodies[takes] : [])], security: [{ bearer: [] }], 'x-reflex-roles': roles }
}

const meanings = {
  400: 'The request is invalid.',
  401: 'The key is missing or unknown.',
  403: 'The key lacks the role, or does not cover the scope.',
  404: 'Not found.',
  409: 'The current state does not allow it.',
  413: 'The body or an event is too large.',
  415: 'Unsupported Content-Type.',
  429: 'Too many requests, or the inbox is full: retry after `Retry-After`.',
  502: 'The decision model failed.',
  503: 'A dependency is unavailable: retry after `Retry-After`.',
  504: 'The time is up: repeat the request with its `Idempotency-Key`.',
} as const

export type ProblemResponse = { description: string; content: { 'application/problem+json': { schema: typeof problem } } }

/** The problems that a request may be answered with: of its key, its parts, and its own. */
export function problemsOf({ roles, params, query, headers, body, problems = [] }: AnyOperation): Record<number, ProblemResponse> {
  const of_key = roles ? [401, 403, 429] : []
  const of_parts = (params ?? query ?? headers ?? body) ? [400] : []
  const all = [...of_key, ...of_parts, ...(body ? [413, 415] : []), ...problems] as (keyof typeof meanings)[]
  const content = { 'application/problem+json': { schema: problem } }
  return Object.fromEntries(all.map((status) => [status, { description: meanings[status], content }]))
}

/** An answer that is JSON text already. */
export const jsonText = (text: string | ReadableStream<Uint8Array>): Response =>
  new Response(text, { headers: { 'Content-Type': 'application/json' } })
