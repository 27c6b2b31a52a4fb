// A reflex for the agent ssh-guard: blocks a public address that guesses passwords, without a model
// and within microseconds. `npm run demo` registers it.
//
// It runs once for each line that passes the guard's filter and sees that line (`event`) as the
// last of the ten latest (`recent_events`). It has no clock: time comes from the lines, so that a
// replayed log is decided like a live one. When unsure it returns null, and the slow path decides.

/**
 * The threshold in guesses and seconds. The slow path uses the same one over all lines, not ten.
 */
const GUESSES = 5
const WINDOW_S = 600
const MOST_USERS = 4

// A user name is a stranger's text, such as "root from 192.0.2.1": each pattern spans the whole
// message, and its greedy `.*` leaves the last address, which sshd wrote itself.
const HEADER = /^(?:<\d+>)?(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT\S+) \S+ sshd(?:-\w+)?\[(\d+)\]: /
const FAILED = /^Failed (\S+) for (invalid user )?(.*) from (\S+) port \d+(?: ssh\d)?(?:: .*)?$/
const ACCEPTED = /^Accepted \S+ for .* from (\S+) port \d+(?: ssh\d)?(?:: .*)?$/
const REPEATED = /^message repeated (\d{1,4}) times: \[ (.*)\]$/

function reflex(context) {
  const last = loginOf(context.event)
  if (last === null || last.guesses === 0 || !isPublic(last.address)) return null

  const lines = context.recent_events.map(loginOf).filter((login) => login !== null && login.address === last.address)
  // A successful login may be a colleague's or the worst case: leave it to the slow path.
  if (lines.some((login) => login.accepted)) return null

  const recent = lines.filter((login) => Math.abs(secondsBetween(login.time, last.time)) <= WINDOW_S)
  const guesses = recent.reduce((sum, login) => sum + login.guesses, 0)
  if (guesses < GUESSES) return null

  const users = Array.from(new Set(recent.map((login) => login.user)))
  return {
    action_type: 'call_tool',
    tool: 'block',
    args: {
      address: last.address,
      reason: `${recent.reduce((sum, login) => sum + login.failures, 0)} failed logins from ${recent[0].time} to ${last.time} as ${named(users)}`,
    },
    // Carried out once: further events from this address complete here, without a second block or a
    // turn.
    idempotence_key: `block:${last.address}`,
  }
}

/** Reads a login attempt from a line; null if it has none. */
function loginOf(event) {
  if (event.type !== 'log.line') return null
  const header = HEADER.exec(event.line)
  const message = (header ? event.line.slice(header[0].length) : event.line).trimEnd()
  const repeated = REPEATED.exec(message)
  const times = repeated ? Number(repeated[1]) : 1
  const text = repeated ? repeated[2] : message

  const accepted = ACCEPTED.exec(text)
  if (accepted) return { accepted: true, address: accepted[1], failures: 0, guesses: 0, user: '', time: event.timestamp }
  const failed = FAILED.exec(text)
  if (!failed) return null
  const [, method, invalid, user, address] = failed
  // A client offers its keys one by one, which is not a guess. A user name that does not exist
  // counts twice: colleagues know their names.
  const failures = method === 'publickey' ? 0 : times
  return { accepted: false, address, failures, guesses: invalid ? 2 * failures : failures, user, time: event.timestamp }
}

const secondsBetween = (one, other) => (milliseconds(other) - milliseconds(one)) / 1000

/**
 * A reflex has no Date. Timestamps are ISO in UTC: days since 1970 by the calendar, then the clock.
 */
function milliseconds(iso) {
  const [year, month, day, hour, minute, second] = iso.split(/\D/, 6).map(Number)
  const shifted = month > 2 ? year : year - 1
  const days =
    Math.floor(365.25 * shifted) -
    Math.floor(shifted / 100) +
    Math.floor(shifted / 400) +
    Math.floor((153 * ((month + 9) % 12) + 2) / 5) +
    day -
    719_469
  return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000
}

/**
 * Blocking a private address would lock the operator out; loopback, link-local and multicast
 * addresses are never an attacker's.
 */
function isPublic(address) {
  if (address.includes(':')) return /^[23][0-9a-f]{3}:/i.test(address)
  const parts = address.split('.').map(Number)
  if (parts.length !== 4 || !parts.every((part) => Number.isInteger(part) && part >= 0 && part <= 255)) return false
  const [first, second] = parts
  if (first === 0 || first === 10 || first === 127 || first >= 224) return false
  if (first === 169 && second === 254) return false
  if (first === 172 && second >= 16 && second <= 31) return false
  if (first === 192 && second === 168) return false
  return !(first === 100 && second >= 64 && second <= 127)
}

/** Truncates and cleans text that a stranger chose. */
const named = (users) =>
  users
    .slice(0, MOST_USERS)
    .map((user) => JSON.stringify(user.replace(/[^ -~]/g, '?').slice(0, 32)))
    .join(', ')
