const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])

export type CheckedUrl = { ok: true; url: URL } | { ok: false; reason: string }

/**
 * An address that may be called: its host is in the list, by its whole name (`api.example.com`, with its port where it has one) or as a part of a domain
 * (`*.example.com`), and its scheme is https; http only for the machine itself.
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
