import { SECRET_SCOPES, TOOL_SECRET_PREFIX, TOOL_SECRET_HOSTS, WEBHOOK_SECRET_PREFIX, isList } from '../base/secrets.ts'
import { coversScope, matchesScope } from '../contract/principal.ts'
import { type HttpToolSetting, type McpServerSetting } from '../contract/settings/outside-tools.ts'
import type { SettingsPatch } from '../contract/settings/settings.ts'
import type { Env } from '../env.ts'
import { checkUrl } from './guarded-fetch.ts'

type Declared = Pick<HttpToolSetting | McpServerSetting, 'name' | 'url' | 'secret_headers'>

/** A secret for tools or webhooks, by name, if the scope may use it. Others are not found. */
export function secretOf(env: Env, name: string, scope: string): string | undefined {
  const secret: unknown = isForOutside(name) && isForScope(env, name, scope) ? env[name] : undefined
  return typeof secret === 'string' ? secret : undefined
}

/** The scopes that may use a secret, as the deployment lists them; null if it does not. */
function secretScopes(env: Env, name: string): string[] | null {
  const said = (env as unknown as Record<string, unknown>)[`${name}${SECRET_SCOPES}`]
  return said === undefined ? null : listOf(said)
}

/** Scopes may be patterns. Without a list, every scope may use it that was given it. */
export const isForScope = (env: Env, name: string, scope: string): boolean =>
  secretScopes(env, name)?.some((pattern) => matchesScope(pattern, scope)) ?? true

/**
 * Why a key may not put a secret to use in a scope; null if it may. What the deployment lists for
 * no scope is used where a key of all scopes says so.
 */
export function useRefusal(env: Env, name: string, { scope, key }: { scope: string; key: { scopes: readonly string[] } }): string | null {
  const may = secretScopes(env, name) === null ? coversScope(key, '*') : isForScope(env, name, scope)
  // It does not say whether the variable exists, which others may have asked for.
  return may ? null : `the secret ${name} is not for the scope ${scope}: ask for it in the deployment's variable ${name}${SECRET_SCOPES}`
}

const SECRET_NAME = /^REFLEX_(?:TOOL|WEBHOOK)_[A-Z0-9_]{1,64}$/

/** The names of secrets for outside that a value holds, at any depth. */
export function secretsNamedIn(value: unknown): string[] {
  if (typeof value === 'string') return SECRET_NAME.test(value) ? [value] : []
  return typeof value === 'object' && value !== null ? [...new Set(Object.values(value).flatMap(secretsNamedIn))] : []
}

/** The hosts that a secret may be sent to. Only the deployment, not the settings, names them. */
export function secretHosts(env: Env, name: string): string[] {
  // A variable of wrangler.toml may also be a list, or anything else that TOML can say.
  const said: unknown = isForOutside(name) ? env[`${name}${TOOL_SECRET_HOSTS}`] : undefined
  return listOf(said)
}

function listOf(said: unknown): string[] {
  const all = (Array.isArray(said) ? said : [said]).flatMap((one) => (typeof one === 'string' ? one.split(',') : []))
  return all.map((one) => one.trim()).filter((one) => one !== '')
}

/** Why one of its secrets is not sent to the host of a tool or a server; null where all are. */
export function secretRefusal(env: Env, { url, secret_headers = {} }: Declared): string | null {
  for (const name of Object.values(secret_headers)) {
    const hosts = secretHosts(env, name)
    const variable = `${name}${TOOL_SECRET_HOSTS}`
    if (hosts.length === 0)
      return `the secret ${name} is sent nowhere: the deployment must name its hosts, separated by commas, in the variable ${variable}`
    const checked = checkUrl(url, hosts)
    if (!checked.ok)
      return `the secret ${name} is not sent there: ${checked.reason}; the deployment's variable ${variable} says where it is`
  }
  return null
}

/** Why the request to a tool or server may not contain secrets; null if it may. */
export const argumentsRefusal = (env: Env, { name, url }: Pick<Declared, 'name' | 'url'>, names: readonly string[]): string | null =>
  secretRefusal(env, { name, url, secret_headers: Object.fromEntries(names.map((secret) => [secret, secret])) })

export function patchRefusal(env: Env, { http_tools, mcp_servers, webhooks: hooks }: SettingsPatch): string | null {
  const webhooks = hooks?.map(({ name, url, secret }) => ({ name, url, secret_headers: { 'webhook-signature': secret } }))
  for (const [setting, declared] of Object.entries({ http_tools, mcp_servers, webhooks })) {
    for (const one of declared ?? []) {
      const refusal = secretRefusal(env, one)
      if (refusal !== null) return `${setting}: ${one.name}: ${refusal}`
    }
  }
  return null
}

type OutsideSecret = `REFLEX_TOOL_${string}` | `REFLEX_WEBHOOK_${string}`
const isForOutside = (name: string): name is OutsideSecret =>
  (name.startsWith(TOOL_SECRET_PREFIX) || name.startsWith(WEBHOOK_SECRET_PREFIX)) && !isList(name)

type Lookup = { name: string; secret: (name: string) => string | undefined }

/** The values of secret headers. Throws, without the value, if one is missing or invalid. */
export function secretValues(secret_headers: Readonly<Record<string, string>>, { name, secret }: Lookup): Record<string, string> {
  return Object.fromEntries(
    Object.entries(secret_headers).map(([header, key]) => {
      const value = secret(key)
      if (value === undefined || value === '') throw new Error(`${name} needs the secret ${key}, which is not set, or not for this scope`)
      // The runtime's own error would quote it.
      if (!/^[\t\u0020-\u007E]+$/.test(value)) throw new Error(`${name} needs the secret ${key}, which holds what no header may hold`)
      return [header, value]
    }),
  )
}
