import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { inject } from 'vitest'

export const ADMIN_KEY = 'e2e-admin-key'

/** Variables of a server that reaches nothing outside. */
export const OFFLINE = {
  REFLEX_ADMIN_KEY: ADMIN_KEY,
  REFLEX_MODEL: 'offline',
  BLOCK_WEBHOOK_URL: '',
  TICKET_WEBHOOK_URL: '',
  NOTIFY_WEBHOOK_URL: '',
}

/** A folder for the state of a server: a copy of one whose D1 has all migrations by default. */
export async function temporaryState(of = inject('migrated')): Promise<{ directory: string; remove: () => Promise<void> }> {
  const directory = await mkdtemp(path.join(tmpdir(), 'reflex-e2e-'))
  await cp(of, directory, { recursive: true })
  return { directory, remove: () => rm(directory, { recursive: true, force: true }) }
}

/** A request as any client makes it. Answers `null` where the server is not there. */
export async function call(
  url: string,
  route: string,
  init: { method?: string; body?: unknown; key?: string } = {},
): Promise<{ status: number; body: unknown } | null> {
  try {
    const response = await fetch(`${url}${route}`, {
      method: init.method ?? (init.body === undefined ? 'GET' : 'POST'),
      headers: {
        authorization: `Bearer ${init.key ?? ADMIN_KEY}`,
        ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
      signal: AbortSignal.timeout(20_000),
    })
    const text = await response.text()
    return { status: response.status, body: text.startsWith('{') || text.startsWith('[') ? (JSON.parse(text) as unknown) : text }
  } catch {
    return null
  }
}

export function bodyOf(answer: { body: unknown } | null): unknown {
  if (!answer) throw new Error('the server did not answer')
  return answer.body
}

/** The body of a good answer; anything else fails the test. */
export async function ask<Body>(url: string, route: string, init: Parameters<typeof call>[2] = {}): Promise<Body> {
  const answer = await call(url, route, init)
  if (!answer || answer.status >= 300) throw new Error(`${route} was answered ${JSON.stringify(answer)}`)
  return answer.body as Body
}

export type ScopeState = { inbox: Record<string, number>; counters: Record<string, number>; turn: object | null; last_seq: number }
export const stateOf = (url: string, scope: string): Promise<ScopeState> => ask(url, scopePath(scope))

/** The number of a scope's events without an outcome. */
export async function openIn(url: string, scope: string): Promise<number> {
  const { inbox } = await stateOf(url, scope)
  return Object.values(inbox).reduce((sum, count) => sum + count, 0)
}

export const scopePath = (scope: string): string => `/v1/scopes/${encodeURIComponent(scope)}`

/** Every entry of a scope's log. */
export async function wholeLog(url: string, scope: string): Promise<Record<string, unknown>[]> {
  const entries: Record<string, unknown>[] = []
  let after = '0'
  for (;;) {
    const page = await call(url, `${scopePath(scope)}/log?limit=1000&after=${after}`)
    if (!page) throw new Error(`the log of ${scope} could not be read`)
    const { items, next_cursor } = page.body as { items: Record<string, unknown>[]; next_cursor: string | null }
    entries.push(...items)
    if (next_cursor === null) return entries
    after = next_cursor
  }
}

export async function eventually<Value>(
  look: () => Promise<Value | null | undefined | false>,
  what: string,
  within_ms = 120_000,
): Promise<Value> {
  const end = Date.now() + within_ms
  for (;;) {
    const value = await look()
    if (value) return value
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}
