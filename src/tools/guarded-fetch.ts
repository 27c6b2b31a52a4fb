const REDIRECTS = new Set([301, 302, 303, 307, 308])
const MOST_REDIRECTS = 3

type GuardedFetch = {
  allowed_hosts: readonly string[]
  /** The hosts of each secret that is sent. */
  secret_hosts?: readonly (readonly string[])[]
  fetch: typeof fetch
}

/**
 * Fetches only from allowed hosts, to which each secret may be sent. Follows redirects on the same
 * origin only.
 */
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
    // As in browsers: a 303 is fetched with GET; 307 and 308 repeat the request.
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

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

type CheckedUrl = { ok: true; url: URL } | { ok: false; reason: string }

/**
 * Checks that an address is https (http on this machine) and its host is in the list: by name
 * (`api.example.com`), with its port, or as `*.example.com`.
 */
export function checkUrl(address: string | URL, allowed_hosts: readonly string[]): CheckedUrl {
  const url = URL.parse(String(address))
  if (!url) return { ok: false, reason: `${String(address).slice(0, 200)} is no address` }
  if (url.username !== '' || url.password !== '') return { ok: false, reason: 'an address must not hold a name or a password' }
  const isSafe = url.protocol === 'https:' || (url.protocol === 'http:' && LOOPBACK.has(url.hostname))
  if (!isSafe) return { ok: false, reason: `${url.protocol}//${url.host} is not https` }
  if (!allowed_hosts.some((pattern) => fits(url, pattern.toLowerCase()))) {
    return { ok: false, reason: `the host ${url.host} is not among those allowed: ${allowed_hosts.join(', ') || 'none'}` }
  }
  return { ok: true, url }
}

function fits({ host, hostname }: URL, pattern: string): boolean {
  if (pattern.startsWith('*.')) return hostname.endsWith(pattern.slice(1)) && host === hostname && pattern.length > 2
  return host === pattern
}
