// A reflex for the agent ssh-guard: blocks a public address that guesses passwords, with no model and within microseconds. `npm run demo` registers it.
//
// It runs once for each line that the guard's filter lets through, and sees that line (`event`) at the end of the ten last ones (`recent_events`). It has no
// clock: time is what the lines say, so that a log that is replayed is decided as a live one. Where it is not sure it returns null, and the slow path thinks.

/** So many guesses within so many seconds. The slow path's threshold is the same, but it counts over all lines, not ten. */
const GUESSES = 5
const WINDOW_S = 600
const MOST_USERS = 4

// A user name is whatever a stranger typed, "root from 192.0.2.1" included: a pattern spans the whole message, and its greedy `.*` leaves the last address
// to the address, which sshd itself wrote.
const HEADER = /^(?:<\d+>)?(?:[A-Z][a-z]{2} [ \d]\d [\d:]{8}|\d{4}-\d\d-\d\dT\S+) \S+ sshd(?:-\w+)?\[(\d+)\]: /
const FAILED = /^Failed (\S+) for (invalid user )?(.*) from (\S+) port \d+(?: ssh\d)?(?:: .*)?$/
const ACCEPTED = /^Accepted \S+ for .* from (\S+) port \d+(?: ssh\d)?(?:: .*)?$/
const REPEATED = /^message repeated (\d{1,4}) times: \[ (.*)\]$/

function reflex(context) {
  const last = loginOf(context.event)
  if (last === null || last.guesses === 0 || !isPublic(last.address)) return null

  const lines = context.recent_events.map(loginOf).filter((login) => login !== null && login.address === last.address)
  // A login that worked may be a colleague's, or the worst case of all: somebody should think about it.
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
    // Carried out once: what still comes from this address completes here, with no second block and no turn.
    idempotence_key: `block:${last.address}`,
  }
}

/** What a line says of a login that was tried; null where it says nothing of one. */
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
  // A client offers its keys one by one: that is no guess. Who names a user that does not exist guesses twice, for a colleague knows his name.
  const failures = method === 'publickey' ? 0 : times
  return { accepted: false, address, failures, guesses: invalid ? 2 * failures : failures, user, time: event.timestamp }
}

const secondsBetween = (one, other) => (milliseconds(other) - milliseconds(one)) / 1000

/** There is no Date in a reflex. Timestamps are ISO in UTC: days since 1970 by the calendar's rules, then the clock. */
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

/** To block a private address is to lock oneself out; loopback, link-local, multicast and the like are none of an attacker's either. */
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

/** Text that a stranger chose, cut short and made plain. */
const named = (users) =>
  users
    .slice(0, MOST_USERS)
    .map((user) => JSON.stringify(user.replace(/[^ -~]/g, '?').slice(0, 32)))
    .join(', ')
