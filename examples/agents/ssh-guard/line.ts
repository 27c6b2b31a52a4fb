import { z } from 'zod'
import { eventType } from '../../../src/core/event.ts'

/** The header of a line. `time` is as written: ISO, or `Dec 10 06:55:46` without year and zone. */
export type Syslog = { time: string; host: string; program: string; pid: number | null; message: string }
/** A login attempt and its result. `times` counts refused passwords or keyboard answers. */
export type SshLine = { kind: SshKind; address: string; user: string | null; times: number }
export type SshKind = 'failed' | 'invalid-user' | 'too-many' | 'left' | 'closed' | 'break-in' | 'accepted'

const HEADER = /^(?:<\d{1,3}>)?([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) (\S+) ([^\s:[\]]+)(?:\[(\d{1,9})\])?: (.*)$/

export function parseSyslog(line: string): Syslog | null {
  const [, time, host, program, pid, message] = HEADER.exec(line.trimEnd()) ?? []
  if (time === undefined || host === undefined || program === undefined || message === undefined) return null
  return { time, host, program, pid: pid === undefined ? null : Number(pid), message }
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const DAY_MS = 86_400_000
/** The last leap day is at most eight years ago. */
const MOST_YEARS = 8

/**
 * Converts a header's time to ISO, or null. Defaults: UTC, and the latest year that is at most a
 * day in the future.
 */
export function syslogTime(time: string, now: number): string | null {
  const [, name = '', day, clock] = /^([A-Z][a-z]{2}) ([ \d]\d) (\d\d:\d\d:\d\d)$/.exec(time) ?? []
  const iso = (text: string) => (z.iso.datetime({ offset: true }).safeParse(text).success ? new Date(text).toISOString() : null)
  if (day === undefined) return iso(time)
  const month = String(MONTHS.indexOf(name) + 1).padStart(2, '0')
  const latest = new Date(now + DAY_MS).getUTCFullYear()
  for (let year = latest; year >= latest - MOST_YEARS; year -= 1) {
    const at = iso(`${year}-${month}-${day.replace(' ', '0')}T${clock}Z`)
    if (at !== null && Date.parse(at) <= now + DAY_MS) return at
  }
  return null
}

/**
 * Attackers choose user names such as "root from 192.0.2.1 port 22 ssh2", so each pattern spans the
 * whole message with a greedy user: the last address is sshd's.
 */
const FORMS: readonly (readonly [SshKind, RegExp])[] = [
  ['failed', /^Failed (?<method>\S+) for (?:invalid user )?(?<user>.*) from (?<address>\S+) port \d+(?: ssh\d)?(?:: .*)?$/],
  ['accepted', /^Accepted \S+ for (?<user>.*) from (?<address>\S+) port \d+(?: ssh\d)?(?:: .*)?$/],
  ['invalid-user', /^Invalid user (?<user>.*) from (?<address>\S+)(?: port \d+)?$/],
  ['invalid-user', /^User (?<user>.*) from (?<address>\S+) not allowed because .*$/],
  [
    'too-many',
    /^(?:error: )?maximum authentication attempts exceeded for (?:invalid user )?(?<user>.*) from (?<address>\S+) port \d+ ssh\d \[preauth\]$/,
  ],
  [
    'too-many',
    /^Disconnecting (?:authenticating|invalid) user (?<user>.*) (?<address>\S+) port \d+: Too many authentication failures \[preauth\]$/,
  ],
  [
    'left',
    /^(?:Connection (?:closed|reset) by|Disconnected from) (?:authenticating|invalid) user (?<user>.*) (?<address>\S+) port \d+ \[preauth\]$/,
  ],
  ['closed', /^(?:Connection (?:closed|reset) by|Disconnected from) (?<address>\S+)(?: port \d+)? \[preauth\]$/],
  ['closed', /^(?:error: )?Received disconnect from (?<address>\S+)(?: port \d+)?: ?\d+: .*\[preauth\]$/],
  ['break-in', /^reverse mapping checking getaddrinfo for \S+ \[(?<address>\S+)\] failed\b.*$/],
  ['break-in', /^Address (?<address>\S+) maps to \S+, but this does not map back to the address\b.*$/],
]
const REPEATED = /^message repeated (\d{1,4}) times: \[ (.*)\]$/
const address = z.union([z.ipv4(), z.ipv6()])

/** Reads a login attempt from an sshd message; null if it has none or names no address. */
export function parseSshMessage(message: string): SshLine | null {
  // Logs that passed through other systems may end lines with a carriage return.
  const text = message.trimEnd()
  const [, repeats = '1', inner = text] = REPEATED.exec(text) ?? []
  for (const [kind, pattern] of FORMS) {
    const groups = pattern.exec(inner)?.groups
    if (groups === undefined) continue
    const parsed = address.safeParse(groups['address'])
    if (!parsed.success) return null
    // A client offers its keys one by one: refused keys before an accepted one are not guesses.
    const guesses = kind === 'failed' && groups['method'] !== 'publickey' ? Number(repeats) : 0
    return { kind, address: parsed.data, user: groups['user']?.trim() ?? null, times: guesses }
  }
  return null
}

/** A log line of a host, whole or without the `program` and `pid` that the sender split off. */
export const logLine = eventType('log.line', {
  host: z.string().min(1).max(255),
  line: z.string().min(1).max(8192),
  program: z.string().min(1).max(64).optional(),
  pid: z.int().min(0).optional(),
})
export type LogLine = z.infer<typeof logLine>
