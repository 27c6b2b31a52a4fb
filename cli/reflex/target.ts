import { UsageError } from '../lib/cli-error.ts'
import type { Profile, Profiles } from './profiles.ts'

export type Flags = { url?: string; key?: string; profile?: string }

const LOGIN = 'Run reflex login, or set REFLEX_URL and REFLEX_KEY.'

/**
 * The server and key to use: flags, then the environment, then a profile. The key of a profile is
 * sent to the URL of that profile only.
 */
export function targetOf(flags: Flags, env: NodeJS.ProcessEnv, stored: Profiles): Profile {
  const name = flags.profile ?? env['REFLEX_PROFILE']
  // A profile that the caller names precedes the environment.
  const useEnv = flags.profile === undefined
  const url = flags.url ?? (useEnv ? nonEmpty(env['REFLEX_URL']) : undefined)
  const key = flags.key ?? (useEnv ? nonEmpty(env['REFLEX_KEY']) : undefined)
  const profile = profileOf(stored, name)
  const chosen = url === undefined ? profile?.url : serverUrl(url)
  if (chosen === undefined) throw new UsageError('No server is configured.', LOGIN)
  if (key !== undefined) return { url: chosen, key: checkedKey(key) }
  const own = profile?.url === chosen ? profile : Object.values(stored.profiles).find(({ url }) => url === chosen)
  if (own === undefined) throw new UsageError(`No key is configured for ${chosen}.`, `Run reflex login --url ${chosen}, or set REFLEX_KEY.`)
  return own
}

function profileOf({ current, profiles }: Profiles, name: string | undefined): Profile | undefined {
  if (name === undefined) return current === null ? undefined : profiles[current]
  const found = profiles[name]
  if (found) return found
  const known = Object.keys(profiles).join(', ')
  throw new UsageError(
    `There is no profile ${name}.`,
    known === '' ? `Create it: reflex login --profile ${name}` : `The profiles are: ${known}.`,
  )
}

/** The URL without a slash at its end. */
export function serverUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new UsageError(`${JSON.stringify(text)} is not the URL of a server.`, 'A URL is like https://reflex.example.com.')
  return url.origin + url.pathname.replace(/\/+$/, '')
}

/** A key is sent in a header, so it is printable ASCII. The error does not quote it. */
export function checkedKey(text: string): string {
  const key = text.trim()
  if (/^[\x21-\x7e]{1,1000}$/.test(key)) return key
  throw new UsageError('The key is empty or contains characters that no key has.', 'Copy it again, without spaces and line breaks.')
}

/** True where others on the network can read what is sent. */
export function isUnencrypted(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !/^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname)
}

const nonEmpty = (text: string | undefined): string | undefined => (text === undefined || text.trim() === '' ? undefined : text)
