import { checkUrl } from './allowed-hosts.ts'

const REDIRECTS = new Set([301, 302, 303, 307, 308])
const MOST_REDIRECTS = 3

export type GuardedFetch = {
  allowed_hosts: readonly string[]
  /** Of each secret that goes along. */
  secret_hosts?: readonly (readonly string[])[]
  fetch: typeof fetch
}

/** Fetches from hosts only that are allowed, and to which each secret may be sent. A redirect is followed on the same origin alone, so that neither headers nor a body get anywhere else. */
export async function guardedFetch(address: string | URL, init: RequestInit, guard: GuardedFetch): Promise<Response> {
  let request: RequestInit = { ...init, redirect: 'manual' }
  let target = allowed(address, guard)
  for (let redirects = 0; ; redirects++) {
    const response = await guard.fetch(target.href, request)
    const location = REDIRECTS.has(response.status) ? response.headers.get('location') : null
    if (location === null) return response
    await response.body?.cancel()
    if (redirects === MOST_REDIRECTS) throw new Error(`${target.host} redirects more than ${MOST_REDIRECTS} times`)
    const next = allowed(URL.parse(location, target.href)?.href ?? location, guard)
    if (next.origin !== target.origin)
      throw new Error(`${target.host} redirects to ${next.host}: redirects to other hosts are not followed`)
    // As browsers do: after a POST a see-other is fetched, and a permanent or a temporary one repeats the request.
    if (response.status < 307 && request.method !== 'GET') request = withoutBody(request)
    target = next
  }
}

function allowed(address: string | URL, { allowed_hosts, secret_hosts = [] }: GuardedFetch): URL {
  const checked = checkUrl(address, allowed_hosts)
  if (!checked.ok) throw new Error(checked.reason)
  for (const hosts of secret_hosts) {
    const bound = checkUrl(checked.url, hosts)
    if (!bound.ok) throw new Error(`a secret must not be sent there: ${bound.reason}`)
  }
  return checked.url
}

function withoutBody(request: RequestInit): RequestInit {
  const { body: _body, ...rest } = request
  return { ...rest, method: 'GET' }
}
