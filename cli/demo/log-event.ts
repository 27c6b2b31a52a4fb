import { sshLineOf } from '../../examples/agents/ssh-guard/burst.ts'
import { parseSyslog, syslogTime } from '../../examples/agents/ssh-guard/line.ts'

/** An event as sent. Its id names the line, so a batch that is sent twice is perceived once. */
export type LineEvent = { id: string; type: 'log.line'; scope: string; source: string; timestamp: string; host: string; line: string }
export type Left = 'empty' | 'no syslog line' | 'too long'

/** The limits of the event type `log.line`. */
const MOST_CHARS = 8192
const MOST_HOST = 100

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

/** The number of failed logins in a line and their address; null if there are none. */
export function failedLogins(line: string): { address: string; times: number } | null {
  const parsed = sshLineOf({ line })
  return parsed && parsed.times > 0 ? { address: parsed.address, times: parsed.times } : null
}

/** Scope names allow fewer characters than host names. */
export const scopeOf = (host: string): string =>
  `ssh/${host
    .toLowerCase()
    .replaceAll(/[^a-z0-9._:@-]/g, '-')
    .slice(0, MOST_HOST)}`
