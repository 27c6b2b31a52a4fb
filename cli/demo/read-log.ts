import { createReadStream } from 'node:fs'
import { resolve } from 'node:path'
import { CliError, messageOf } from '../lib/cli-error.ts'
import { counted } from '../lib/text.ts'
import { packageFolder } from '../lib/package.ts'
import { failedLogins, lineEvent, type Left, type LineEvent } from './log-event.ts'
import { EXAMPLE } from './options.ts'

/** Each host has a scope, followed by a connection of its own. */
const MOST_HOSTS = 100
const MOST_BYTES = 64 * 1024 * 1024
const EXPECTED = 'Lines look like: Dec 10 06:55:46 host sshd[24200]: Failed password for root from 203.0.113.7 port 38926 ssh2'

/** `attempts`: failed logins by address, over all events. */
export type AuthLog = {
  name: string
  events: LineEvent[]
  scopes: string[]
  attempts: ReadonlyMap<string, number>
  left_out: Record<string, number>
}

/**
 * Reads an auth log, by default the project's example. Throws a CliError if it has no line to send.
 */
export async function readAuthLog({ file, limit }: { file: string | null; limit: number }, now: number): Promise<AuthLog> {
  // npm runs scripts in the project's folder; the user names a file relative to his own.
  const path = file === null ? resolve(packageFolder, EXAMPLE) : resolve(process.env['INIT_CWD'] ?? '.', file)
  const text = await read(path)
  return { name: file ?? EXAMPLE, ...eventsOf(text, { path, limit, now }) }
}

export function eventsOf(text: string, { path, limit, now }: { path: string; limit: number; now: number }): Omit<AuthLog, 'name'> {
  // The last line ends with a line break, so the last piece is empty.
  const lines = text.replace(/\n$/, '').split('\n')
  if (text.trim() === '') throw new CliError(`${path} is empty.`, EXPECTED)
  const left_out: Partial<Record<Left | 'beyond --limit' | 'of too many hosts', number>> = {}
  const leave = (why: keyof typeof left_out) => (left_out[why] = (left_out[why] ?? 0) + 1)
  const scopes = new Set<string>()
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
    }
  }
  if (events.length === 0)
    throw new CliError(`${path} is not an sshd auth log: none of its ${counted(lines.length, 'line')} has the expected format.`, EXPECTED)
  return { events, scopes: Array.from(scopes), attempts: attemptsIn(events), left_out }
}

function attemptsIn(events: readonly LineEvent[]): Map<string, number> {
  const attempts = new Map<string, number>()
  for (const { line } of events) {
    const failed = failedLogins(line)
    if (failed) attempts.set(failed.address, (attempts.get(failed.address) ?? 0) + failed.times)
  }
  return attempts
}

async function read(path: string): Promise<string> {
  const pieces: Buffer[] = []
  try {
    for await (const piece of createReadStream(path, { end: MOST_BYTES - 1 })) pieces.push(Buffer.from(piece))
  } catch (error) {
    throw unreadable(path, error)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function unreadable(path: string, error: unknown): CliError {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  if (code === 'ENOENT')
    return new CliError(`There is no file ${path}.`, 'Name another one with --file PATH, or leave it out for the example.')
  if (code === 'EACCES')
    return new CliError(`${path} may not be read by you.`, 'Copy it to where you can read it: sudo cat FILE > auth.log')
  if (code === 'EISDIR') return new CliError(`${path} is a folder.`, 'Name a file in it with --file PATH.')
  return new CliError(`${path} cannot be read: ${messageOf(error)}`, null, error)
}
