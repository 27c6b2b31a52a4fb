import { setTimeout as wait } from 'node:timers/promises'
import { CliError, messageOf } from './cli-error.ts'

export type Request = { method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'; body?: unknown; signal?: AbortSignal }
export type Api = {
  url: string
  key: string
  /**
   * Returns the response's JSON, null if it has no body. Retries while the server is busy; throws a
   * Refused with the problem's detail.
   */
  json: <Answer>(path: string, request?: Request) => Promise<Answer>
  /** Returns the raw response, for streams. */
  open: (path: string, headers: Record<string, string>, signal: AbortSignal) => Promise<Response>
}

/** The server responded with a problem. */
export class RequestRefused extends CliError {
  readonly status: number

  constructor(what: string, status: number, detail: string) {
    super(`${what} was answered ${status}: ${detail}`, hints[status] ?? null)
    this.status = status
  }
}

/** Nothing answered: a connection that ended may be opened again. */
export class Unreachable extends CliError {}

const MOST_TRIES = 6
const BUSY = new Set([429, 502, 503])
const DEV_HINT = 'The server may have ended: npm run dev shows what it says.'
const hints: Partial<Record<number, string>> = {
  401: 'Check the key: reflex login stores one, REFLEX_KEY and --key override it.',
  403: 'Use a key with the role and the scopes that this needs: an admin sees those of each key with reflex keys list.',
}

/** A client of Reflex's HTTP API. `unreachable`: the hint if the server does not respond. */
export function connect(url: string, key: string, unreachable = DEV_HINT): Api {
  const authorization = `Bearer ${key}`
  const send = async (what: string, path: string, init: RequestInit & { signal?: AbortSignal }) => {
    const response = await fetch(url + path, init).catch((error: unknown) => {
      init.signal?.throwIfAborted()
      const cause = error instanceof Error && error.cause !== undefined ? ` (${messageOf(error.cause)})` : ''
      throw new Unreachable(`${what} was not answered: ${messageOf(error)}${cause}`, unreachable, error)
    })
    // The page of some other server, or of this one where the address has a path.
    if (response.ok && response.headers.get('content-type')?.startsWith('text/html')) throw otherServer(what)
    return response
  }
  return {
    url,
    key,
    open: (path, headers, signal) => send(`GET ${path}`, path, { headers: { ...headers, authorization }, signal }),
    async json<Answer>(path: string, { method = 'GET', body, signal }: Request = {}) {
      const init = {
        method,
        headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal && { signal }),
      }
      for (let tries = 1; ; tries += 1) {
        const response = await send(`${method} ${path}`, path, init)
        if (response.status === 204) return null as Answer
        if (response.ok) return (await response.json()) as Answer
        if (!BUSY.has(response.status) || tries === MOST_TRIES) throw await refused(response, `${method} ${path}`)
        await response.body?.cancel()
        await wait(1000 * Number(response.headers.get('retry-after') ?? 1), undefined, signal ? { signal } : {})
      }
    },
  }
}

/** The error for an answer that the API never gives: some other program listens at the address. */
export const otherServer = (what: string): CliError =>
  new CliError(`${what} was answered, but not by the API of Reflex`, 'Check the address: --url, REFLEX_URL or a profile names it.')

export async function refused(response: Response, what: string): Promise<RequestRefused> {
  return new RequestRefused(what, response.status, detailOf(await response.text()))
}

type Problem = { detail?: string; title?: string; errors?: { index?: number; path: string; message: string }[] }

/** The detail, which quotes the first error, and a line for each further one. */
function detailOf(text: string): string {
  try {
    const { detail, title, errors = [] }: Problem = JSON.parse(text)
    const more = errors.slice(1).map(({ index, path, message }) => `  ${index === undefined ? '' : `event ${index}, `}${path}: ${message}`)
    return [detail ?? title ?? text, ...more].join('\n')
  } catch {
    return text.slice(0, 500)
  }
}
