import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { sshLineOf } from '../../examples/agents/ssh-guard/burst.ts'
import { parseSyslog, syslogTime } from '../../examples/agents/ssh-guard/line.ts'
import { CliError, messageOf } from '../lib/cli-error.ts'
import { packageFolder } from '../lib/package.ts'
import { counted } from '../lib/text.ts'
import { EXAMPLE } from './options.ts'

/** An event as sent. Its id names the line, so a batch that is sent twice is perceived once. */
export type LineEvent = { id: string; type: 'log.line'; scope: string; source: string; timestamp: string; host: string; line: string }
type Left = 'empty' | 'no syslog line' | 'too long'
/** `attempts`: failed logins by address, over all events. */
export type AuthLog = {
  name: string
  events: LineEvent[]
  scopes: string[]
  attempts: ReadonlyMap<string, number>
  left_out: Record<string, number>
}

const MOST_HOSTS = 100
const MOST_BYTES = 64 * 1024 * 1024
/** The limits of the event type `log.line`. */
const MOST_CHARS = 8192
const MOST_HOST = 100
const EXPECTED = 'Lines look like: Dec 10 06:55:46 host sshd[24200]: Failed password for root from 203.0.113.7 port 38926 ssh2'

/**
 * Reads an auth log, by default the project's example. Throws a CliError if it has no line to send.
 */
export async function readAuthLog({ file, limit }: { file: string | null; limit: number }, now: number): Promise<AuthLog> {
  // npm runs scripts in the project's folder; the user names a file relative to the current one.
  const path = file === null ? resolve(packageFolder, EXAMPLE) : resolve(process.env['INIT_CWD'] ?? '.', file)
  return { name: file ?? EXAMPLE, ...eventsOf(await read(path), { path, limit, now }) }
}

export function eventsOf(text: string, { path, limit, now }: { path: string; limit: number; now: number }): Omit<AuthLog, 'name'> {
  // The last line ends with a line break, so the last piece is empty.
  const lines = text.replace(/\n$/, '').split('\n')
  if (text.trim() === '') throw new CliError(`${path} is empty.`, EXPECTED)
  const left_out: Partial<Record<Left | 'beyond --limit' | 'of too many hosts', number>> = {}
  const leave = (why: keyof typeof left_out) => (left_out[why] = (left_out[why] ?? 0) + 1)
  const scopes = new Set<string>()
  const attempts = new Map<string, number>()
  const events: LineEvent[] = []
  for (const [index, line] of lines.entries()) {
    const event = lineEvent(line, index + 1, now)
    if (event === 'empty') continue
    if (typeof event === 'string') leave(event)
    else if (events.length >= limit) leave('beyond --limit')
    else if (!scopes.has(event.scope) && scopes.size >= MOST_HOSTS) leave('of too many hosts')
    else {
      scopes.add(event.scope)
      events.push(event)
      const { address = '', times = 0 } = sshLineOf(event) ?? {}
      if (times > 0) attempts.set(address, (attempts.get(address) ?? 0) + times)
    }
  }
  if (events.length === 0)
    throw new CliError(`${path} is not an sshd auth log: none of its ${counted(lines.length, 'line')} has the expected format.`, EXPECTED)
  return { events, scopes: Array.from(scopes), attempts, left_out }
}

/**
 * Converts a line of an auth log into an event for its host's scope, or returns the reason why it
 * cannot. `number` counts from 1.
 */
export function lineEvent(text: string, number: number, now: number): LineEvent | Left {
  const line = text.trimEnd()
  if (line === '') return 'empty'
  if (line.length > MOST_CHARS) return 'too long'
  const header = parseSyslog(line)
  const timestamp = header && syslogTime(header.time, now)
  if (!header || !timestamp) return 'no syslog line'
  const { host } = header
  return { id: `line-${number}`, type: 'log.line', scope: scopeOf(host), source: 'demo', timestamp, host: host.slice(0, MOST_HOST), line }
}

/** Scope names allow fewer characters than host names. */
export const scopeOf = (host: string): string => {
  const name = host.toLowerCase().replaceAll(/[^a-z0-9._:@-]/g, '-')
  return `ssh/${name.slice(0, MOST_HOST)}`
}

async function read(path: string): Promise<string> {
  try {
    let text = ''
    for await (const piece of createReadStream(path, { encoding: 'utf8', end: MOST_BYTES - 1 })) text += String(piece)
    return text
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : ''
    if (code === 'ENOENT')
      throw new CliError(`There is no file ${path}.`, 'Name another one with --file PATH, or leave it out for the example.')
    if (code === 'EISDIR') throw new CliError(`${path} is a folder.`, 'Name a file in it with --file PATH.')
    throw new CliError(`${path} cannot be read: ${messageOf(error)}`, 'Copy it to where you can read it: sudo cat FILE > auth.log', error)
  }
}
