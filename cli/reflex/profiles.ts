import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { CliError, messageOf } from '../lib/cli-error.ts'

const profile = z.object({ url: z.string(), key: z.string() })
const stored = z.object({ current: z.string().nullable(), profiles: z.record(z.string(), profile) })
export type Profile = z.infer<typeof profile>
/** `current` is the profile that is used where none is named. */
export type Profiles = z.infer<typeof stored>

/** Follows the XDG base directory specification. */
export const profilesPath = (env: NodeJS.ProcessEnv): string =>
  join(env['XDG_CONFIG_HOME'] || join(homedir(), '.config'), 'reflex', 'profiles.json')

export const statePath = (env: NodeJS.ProcessEnv): string => join(env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state'), 'reflex')

/** Throws a CliError if the file is damaged, or others may read its keys. */
export function readProfiles(path: string): Profiles {
  const text = textOf(path)
  if (text === null) return { current: null, profiles: {} }
  if (process.platform !== 'win32' && (statSync(path).mode & 0o077) !== 0)
    throw new CliError(`${path} holds keys, and others may read it.`, `chmod 600 ${path}`)
  try {
    return stored.parse(JSON.parse(text))
  } catch (error) {
    // The parser's message would quote the file.
    throw new CliError(`${path} is not a file of profiles.`, 'Remove it and run reflex login again.', error)
  }
}

/** Replaces the file as a whole; only its owner may read it. */
export function writeProfiles(path: string, profiles: Profiles): void {
  writePrivate(path, `${JSON.stringify(profiles, null, 2)}\n`)
}

/** Writes a file for the owner's eyes only, as a whole or not at all. */
export function writePrivate(path: string, text: string): void {
  const draft = `${path}.${randomUUID()}`
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
    renameSync(draft, path)
  } catch (error) {
    throw new CliError(`${path} cannot be written: ${messageOf(error)}`, null, error)
  }
}

export function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw new CliError(`${path} cannot be read: ${messageOf(error)}`, null, error)
  }
}
