import { setTimeout as wait } from 'node:timers/promises'
import { CliError, messageOf } from './cli-error.ts'

export type Request = { method?: 'GET' | 'POST' | 'PATCH'; body?: unknown; signal?: AbortSignal }
export type Api = {
  url: string
  key: string
  /**
   * Returns the response's JSON. Retries while the server is busy; throws a CliError with the
   * problem's detail.
   */
  json: <Answer>(path: string, request?: Request) => Promise<Answer>
  /** Returns the raw response, for streams. */
  open: (path: string, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>
}

const MOST_TRIES = 6
const BUSY = new Set([429, 502, 503])

/** A client of Reflex's HTTP API. */
export function connect(url: string, key: string): Api {
  const authorization = `Bearer ${key}`
  return {
    url,
    key,
    open: (path, headers, signal) => fetch(url + path, { headers: { ...headers, authorization }, signal }),
    async json<Answer>(path: string, { method = 'GET', body, signal }: Request = {}) {
      const init = {
        method,
        headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      }
      for (let tries = 1; ; tries += 1) {
        const response = await fetch(url + path, init).catch((error: unknown) => {
          signal?.throwIfAborted()
          const cause = error instanceof Error && error.cause !== undefined ? ` (${messageOf(error.cause)})` : ''
          throw new CliError(
            `${method} ${path} was not answered: ${messageOf(error)}${cause}`,
            'The server may have ended: npm run dev shows what it says.',
            error,
          )
        })
        if (response.ok) return (await response.json()) as Answer
        if (!BUSY.has(response.status) || tries === MOST_TRIES) throw await refused(response, `${method} ${path}`)
        await response.body?.cancel()
        await wait(1000 * Number(response.headers.get('retry-after') ?? 1), undefined, signal ? { signal } : {})
      }
    },
  }
}

async function refused(response: Response, what: string): Promise<CliError> {
  const text = await response.text()
  return new CliError(`${what} was answered ${response.status}: ${detailOf(text)}`)
}

function detailOf(text: string): string {
  try {
    const { detail, title }: { detail?: string; title?: string } = JSON.parse(text)
    return detail ?? title ?? text
  } catch {
    return text.slice(0, 500)
  }
}
