import type { Command } from 'commander'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { connect, otherServer, RequestRefused } from '../../lib/api.ts'
import { profilesPath, readProfiles, writeProfiles } from '../profiles.ts'
import { handler, type Session } from '../session.ts'
import { checkedKey, isUnencrypted, serverUrl } from '../target.ts'

const LOCAL = 'http://127.0.0.1:8787'
const HELP = `
The key is read from a prompt, or from standard input: reflex login --url URL < key.txt
The profile is named by --profile, "default" otherwise, and is used until another login.`

export function addLogin(program: Command): void {
  program.command('login').description('Store the URL and key of a server as a profile').addHelpText('after', HELP).action(handler(login))
  program.command('logout').description('Remove a profile and its key').action(handler(logout))
}

async function login({ flags, print, signal }: Session): Promise<void> {
  const path = profilesPath(process.env)
  const stored = readProfiles(path)
  const isTerminal = process.stdin.isTTY
  const given = flags.url ?? process.env['REFLEX_URL'] ?? (isTerminal ? await asked(`URL of the server [${LOCAL}]: `, signal) : '')
  const url = serverUrl(given.trim() === '' ? LOCAL : given)
  if (isUnencrypted(url)) print.note(`Warning: ${url} is not encrypted: others on the way can read the key. Use https.`)
  const key = checkedKey(flags.key ?? (isTerminal ? await asked('Key (it is not shown): ', signal, true) : await text(process.stdin)))
  const access = await accessOf(url, key, signal)
  const name = flags.profile ?? 'default'
  writeProfiles(path, { current: name, profiles: { ...stored.profiles, [name]: { url, key } } })
  print.result({ profile: name, url, path }, () => [`Logged in to ${url}${access}. The profile ${name} is in ${path}.`])
}

/** Throws unless the server accepts the key. A key may lack the role to see the server's health. */
async function accessOf(url: string, key: string, signal: AbortSignal): Promise<string> {
  try {
    const api = connect(url, key, `Check that the server runs and that ${url} is its address.`)
    const { database } = await api.json<{ database?: object }>('/health/detailed', { signal })
    if (!database) throw otherServer('GET /health/detailed')
    return ''
  } catch (error) {
    if (error instanceof RequestRefused && error.status === 403) return '; the key may not read, as it lacks the role viewer'
    throw error
  }
}

function logout({ flags, print }: Session): void {
  const path = profilesPath(process.env)
  const { current, profiles } = readProfiles(path)
  const name = flags.profile ?? current ?? 'default'
  const { [name]: removed, ...others } = profiles
  if (removed === undefined) return print.note(`There is no profile ${name}.`)
  writeProfiles(path, { current: name === current ? (Object.keys(others)[0] ?? null) : current, profiles: others })
  print.result({ removed: name }, () => [`Removed the profile ${name}. Its key still works: revoke it with reflex keys revoke.`])
}

/** Asks on the terminal. A hidden answer is not echoed. */
async function asked(question: string, signal: AbortSignal, hidden = false): Promise<string> {
  if (hidden) process.stderr.write(question)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: hidden ? silent : process.stderr, terminal: true })
  try {
    return await lines.question(hidden ? '' : question, { signal })
  } finally {
    lines.close()
    if (hidden) process.stderr.write('\n')
  }
}
