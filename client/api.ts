import type { z } from 'zod'
import { addressOf } from '../src/contract/address.ts'
import type { Method } from '../src/contract/operation.ts'
import type { problem } from '../src/contract/problem.ts'
import type { Credential } from './socket.ts'

export type ProblemBody = z.infer<typeof problem>

/** A request that the deployment refused, with its problem (RFC 9457) as data. */
export class ReflexError extends Error {
  override readonly name = 'ReflexError'
  readonly status: number
  readonly problem: ProblemBody | null

  constructor(status: number, problem: ProblemBody | null, message: string) {
    super(message)
    this.status = status
    this.problem = problem
  }
}

export type ReflexOptions = Credential & {
  /** The address of the deployment, such as `https://reflex.example.com`. */
  base_url: string
  /** Sends the requests, for example through your own server where the browser has no key. */
  fetch?: typeof fetch
}

export type ScopeOptions = ReflexOptions & {
  scope: string
  /** The name of this client in `ws.message` events that are sent as `{content}`. */
  connection_id?: string
}

type Query = Record<string, string | number | undefined>
type Request = { method?: string; body?: unknown; query?: Query; signal?: AbortSignal | undefined }
export type ApiCall = <Answer>(path: string, request?: Request) => Promise<Answer>

/** Sends requests and returns the parsed answer. Throws ReflexError unless it is a success. */
export function apiOf(options: ReflexOptions): ApiCall {
  const base = options.base_url.replace(/\/+$/, '')
  return async <Answer>(path: string, { method, body, query = {}, signal }: Request = {}): Promise<Answer> => {
    const given = Object.entries(query).filter(([, value]) => value !== undefined)
    const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()
    const send = options.fetch ?? fetch
    const response = await send(`${base}${path}${search === '' ? '' : `?${search}`}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...('key' in options && { Authorization: `Bearer ${options.key}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
    const text = await response.text()
    if (response.ok) return (text === '' ? null : JSON.parse(text)) as Answer
    const problem = problemIn(text)
    throw new ReflexError(response.status, problem, problem?.detail ?? `HTTP ${response.status}`)
  }
}

/**
 * Sends a request as the reference names it, such as `get /v1/scopes/{scope}`: its fields go where
 * the request has them.
 */
export type AskApi = <Answer>(at: `${Method} /${string}`, fields?: Readonly<Record<string, unknown>>) => Promise<Answer>

export const askOf =
  (send: ApiCall): AskApi =>
  (at, fields = {}) => {
    const { path, rest } = addressOf(at, fields)
    const method = at.slice(0, at.indexOf(' ')).toUpperCase()
    const given = Object.fromEntries(rest)
    return send(path, method === 'GET' || method === 'DELETE' ? { method, query: given as Query } : { method, body: given })
  }

function problemIn(text: string): ProblemBody | null {
  try {
    const value = JSON.parse(text) as ProblemBody | null
    return typeof value?.detail === 'string' ? value : null
  } catch {
    return null
  }
}
