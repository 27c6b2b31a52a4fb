import { z } from 'zod'
import { type LogLine, type SshLine, parseSshMessage, parseSyslog } from './line.ts'

/** A line's share in an address's tries, small enough to be kept in the scratch. `at` in ms. */
export const trace = z.object({ id: z.string(), at: z.number(), address: z.string(), connection: z.string(), times: z.number() })
export type Trace = z.infer<typeof trace>
/** `failures` within any `window_s` make a burst. */
export type Threshold = { failures: number; window_s: number }
/** The facts about an address that a model receives; times are ISO. */
export const burst = z.object({
  address: z.string(),
  failures: z.number(),
  users: z.array(z.string()),
  hosts: z.array(z.string()),
  logins: z.number(),
  first: z.string(),
  last: z.string(),
  blocked: z.boolean(),
})
export type Burst = z.infer<typeof burst>

/** sshd and, since OpenSSH 9.8, its parts (`sshd-session`, `sshd-auth`). */
const SSHD = /^sshd(?:-\w+)?$/

type Line = Pick<LogLine, 'line' | 'program'>
/** A context keeps its events until an action, and each turn reads all of them. */
const read = new WeakMap<Line, SshLine | null>()

/** Reads a login attempt from an event; null if it has none. */
export function sshLineOf(event: Line): SshLine | null {
  const known = read.get(event)
  if (known !== undefined) return known
  const found = readLine(event)
  read.set(event, found)
  return found
}

function readLine({ line, program }: Line): SshLine | null {
  const header = parseSyslog(line)
  const writer = header?.program ?? program
  if (writer !== undefined && !SSHD.test(writer)) return null
  return parseSshMessage(header?.message ?? line)
}

/** `break-in` is excluded: it reports untidy DNS. */
const HOSTILE: ReadonlySet<SshLine['kind']> = new Set(['failed', 'invalid-user', 'too-many', 'left'])

export function tracesOf(lines: readonly LogLine[]): Trace[] {
  return lines.flatMap((event) => {
    const parsed = sshLineOf(event)
    if (!parsed || !HOSTILE.has(parsed.kind)) return []
    // Lines without a process count as one connection.
    const connection = `${event.host}[${parseSyslog(event.line)?.pid ?? event.pid ?? ''}]`
    return [{ id: event.id, at: Date.parse(event.timestamp), address: parsed.address, connection, times: parsed.times }]
  })
}

/** The addresses that failed often enough within any window, by the events' own times. */
export function burstingAddresses(traces: readonly Trace[], { failures, window_s }: Threshold): string[] {
  const byAddress = Map.groupBy(triesOf(traces), ({ address }) => address)
  const reached = (tries: readonly Trace[]) => mostWithin(tries, window_s * 1000) >= failures
  return Array.from(byAddress).flatMap(([address, tries]) => (reached(tries) ? [address] : []))
}

/** Returns the addresses that logged in, among those that failed. */
export function loginsOf(lines: readonly LogLine[], traces: readonly Trace[]): string[] {
  const failed = new Set(traces.map(({ address }) => address))
  const logins = lines.flatMap((event) => {
    const parsed = sshLineOf(event)
    return parsed?.kind === 'accepted' && failed.has(parsed.address) ? [parsed.address] : []
  })
  return Array.from(new Set(logins))
}

/** A connection counts its refused passwords, or 1 if it only named a user. */
function triesOf(traces: readonly Trace[]): Trace[] {
  const byConnection = Map.groupBy(traces, ({ connection, address }) => `${connection} ${address}`)
  return Array.from(byConnection.values()).flatMap((lines) => {
    const refused = lines.filter(({ times }) => times > 0)
    const [first] = lines
    return refused.length > 0 || !first ? refused : [{ ...first, times: 1 }]
  })
}

function mostWithin(tries: readonly Trace[], window_ms: number): number {
  const sorted = tries.toSorted((left, right) => left.at - right.at)
  let [from, count, most] = [0, 0, 0]
  for (const { at, times } of sorted) {
    count += times
    for (let oldest = sorted[from]; oldest && oldest.at < at - window_ms; oldest = sorted[from]) {
      count -= oldest.times
      from += 1
    }
    most = Math.max(most, count)
  }
  return most
}

const MOST_USERS = 8
const MOST_USER_CHARS = 32

/** Collects an address's attempts, including carried ones, and its other lines of this turn. */
export function burstOf(address: string, traces: readonly Trace[], lines: readonly LogLine[]): Omit<Burst, 'blocked'> {
  const tries = triesOf(traces.filter((one) => one.address === address))
  const times = tries.map(({ at }) => at).sort((left, right) => left - right)
  const own = lines.flatMap((event) => {
    const parsed = sshLineOf(event)
    return parsed?.address === address ? [{ ...parsed, host: event.host }] : []
  })
  const users = new Set(own.flatMap(({ kind, user }) => (user && kind !== 'accepted' ? [bounded(user)] : [])))
  return {
    address,
    failures: tries.reduce((sum, { times }) => sum + times, 0),
    users: Array.from(users).slice(0, MOST_USERS),
    hosts: Array.from(new Set(own.map(({ host }) => host))).slice(0, MOST_USERS),
    logins: own.filter(({ kind }) => kind === 'accepted').length,
    first: new Date(times[0] ?? 0).toISOString(),
    last: new Date(times.at(-1) ?? 0).toISOString(),
  }
}

/** The attacker chooses the user name: a short, plain piece of it is enough to recognise it. */
const bounded = (user: string): string => user.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MOST_USER_CHARS)
