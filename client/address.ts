/** Encodes a name for a path. `hc` inserts parameters unencoded. */
export const inPath = (name: string): string => encodeURIComponent(name)

export const scopePath = (scope: string): string => `/v1/scopes/${inPath(scope)}`

export const scopeAddress = (base_url: string, scope: string, rest: string): string =>
  `${base_url.replace(/\/+$/, '')}${scopePath(scope)}/${rest}`

export function socketAddress(base_url: string, scope: string, query: Record<string, string | undefined>): string {
  const given = Object.entries({ ...query, frames: 'units' }).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return `${scopeAddress(base_url, scope, 'ws').replace(/^http/, 'ws')}?${new URLSearchParams(given).toString()}`
}
