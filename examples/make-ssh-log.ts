// Writes the sample log: `node examples/make-ssh-log.ts > examples/ssh-auth.log`. The output is
// deterministic; all addresses are reserved for documentation.

const START = Date.UTC(2026, 2, 9, 6, 0, 0)
const END_S = 4 * 3600
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const COMMON_USERS = ['admin', 'test', 'oracle', 'ubuntu', 'git', 'postgres', 'pi', 'user', 'ftpuser', 'deploy', 'minecraft', 'jenkins']

type Line = { at: number; host: string; program: 'sshd' | 'CRON'; process: number; message: string }
const lines: Line[] = []

/** Deterministic numbers in [0, 1) (mulberry32). */
let state = 20_260_309
function random(): number {
  state = (state + 0x6d2b79f5) | 0
  let mixed = Math.imul(state ^ (state >>> 15), state | 1)
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
}
const between = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1))
const pick = <Item>(items: readonly [Item, ...Item[]]): Item => items[Math.floor(random() * items.length)] ?? items[0]

let processes = 0
type Process = { port: number; say: (after_s: number, message: string) => void }

/**
 * Each connection has its own process; `say` writes its next line the given seconds after the
 * previous one.
 */
function start(at_s: number, host: string, program: Line['program'] = 'sshd'): Process {
  processes += 1
  const process = processes
  let at = at_s
  const say = (after_s: number, message: string) => {
    at += after_s
    lines.push({ at, host, program, process, message })
  }
  return { port: between(32_768, 60_999), say }
}

function failedLogin(at_s: number, host: string, address: string, user: string, real: boolean): void {
  const { port, say } = start(at_s, host)
  const named = real ? user : `invalid user ${user}`
  if (!real) say(0, `Invalid user ${user} from ${address} port ${port}`)
  if (!real) say(0, 'pam_unix(sshd:auth): check pass; user unknown')
  say(
    0,
    `pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=${address} ${real ? ` user=${user}` : ''}`,
  )
  say(2, `Failed password for ${named} from ${address} port ${port} ssh2`)
  if (random() < 0.5) say(0, `Received disconnect from ${address} port ${port}:11: Bye Bye [preauth]`)
  say(0, `Disconnected from ${real ? 'authenticating' : 'invalid'} user ${user} ${address} port ${port} [preauth]`)
}

/** Guesses root's password until sshd hangs up. */
function hammer(at_s: number, host: string, address: string): void {
  const { port, say } = start(at_s, host)
  say(0, `pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=${address}  user=root`)
  say(2, `Failed password for root from ${address} port ${port} ssh2`)
  say(9, `message repeated 5 times: [ Failed password for root from ${address} port ${port} ssh2]`)
  say(0, `error: maximum authentication attempts exceeded for root from ${address} port ${port} ssh2 [preauth]`)
  say(0, `Disconnecting authenticating user root ${address} port ${port}: Too many authentication failures [preauth]`)
  say(0, `PAM 5 more authentication failures; logname= uid=0 euid=0 tty=ssh ruser= rhost=${address}  user=root`)
}

function login(at_s: number, host: string, address: string, user: string, how: 'password' | 'publickey'): void {
  const { port, say } = start(at_s, host)
  const key = how === 'publickey' ? ': ED25519 SHA256:Ei5xJ8o0wT1cQb3kVhXf7mZr2yNsLpUaGd4tRq6vBkE' : ''
  say(0, `Accepted ${how} for ${user} from ${address} port ${port} ssh2${key}`)
  say(0, `pam_unix(sshd:session): session opened for user ${user}(uid=1001) by (uid=0)`)
  const stays = between(60, 1500)
  say(stays, `Received disconnect from ${address} port ${port}:11: disconnected by user`)
  say(0, `Disconnected from user ${user} ${address} port ${port}`)
  say(0, `pam_unix(sshd:session): session closed for user ${user}`)
}

/** A burst of `tries` guesses, some seconds apart. */
function burst(at_s: number, host: string, address: string, tries: number, users: readonly [string, ...string[]]): void {
  let at = at_s
  for (let index = 0; index < tries; index += 1) {
    const user = pick(users)
    failedLogin(at, host, address, user, user === 'root')
    at += between(2, 8)
  }
}

const everyone: [string, ...string[]] = ['root', ...COMMON_USERS]
burst(600, 'web-1', '203.0.113.45', 14, everyone)
burst(2700, 'web-1', '198.51.100.23', 9, ['root'])
burst(4200, 'db-1', '203.0.113.112', 22, everyone)
hammer(6000, 'db-1', '192.0.2.201')
hammer(6025, 'db-1', '192.0.2.201')
burst(7800, 'web-1', '198.51.100.77', 6, ['admin', 'administrator'])
// Two bursts at once, one of them on both hosts.
burst(9600, 'web-1', '203.0.113.9', 8, ['postgres', 'oracle', 'mysql'])
burst(9604, 'db-1', '203.0.113.9', 8, ['postgres', 'oracle', 'mysql'])
burst(9610, 'web-1', '198.51.100.140', 7, ['root'])
// A burst that ends in a login: the one to look at first.
burst(12_000, 'web-1', '192.0.2.66', 7, ['deploy'])
login(12_060, 'web-1', '192.0.2.66', 'deploy', 'password')

// Too slow for the window: one guess every 20 minutes.
for (let at = 300; at < END_S; at += 1200) failedLogin(at, 'db-1', '198.51.100.200', pick(['test', 'guest']), false)
// A colleague who needed three attempts.
for (const at of [5000, 5008, 5015]) failedLogin(at, 'web-1', '192.0.2.10', 'alice', true)
login(5024, 'web-1', '192.0.2.10', 'alice', 'password')
for (const at of [900, 3600, 8400, 11_400]) login(at, pick(['web-1', 'db-1']), '192.0.2.10', 'alice', 'publickey')
for (const at of [1500, 7200, 10_800]) login(at, 'db-1', '192.0.2.31', 'bob', 'publickey')

// Other lines of such a log.
for (let index = 0; index < 24; index += 1) {
  const at = between(0, END_S)
  const host = pick(['web-1', 'db-1'])
  const address = `198.51.100.${between(210, 250)}`
  const { port, say } = start(at, host)
  const noise = pick([
    `Connection closed by ${address} port ${port} [preauth]`,
    `Did not receive identification string from ${address} port ${port}`,
    `Unable to negotiate with ${address} port ${port}: no matching key exchange method found. Their offer: diffie-hellman-group1-sha1 [preauth]`,
    `reverse mapping checking getaddrinfo for host-${between(10, 99)}.example.net [${address}] failed - POSSIBLE BREAK-IN ATTEMPT!`,
  ])
  say(0, noise)
}
for (let at = 17; at < END_S; at += 1020) {
  const { say } = start(at, 'web-1', 'CRON')
  say(0, 'pam_unix(cron:session): session opened for user root(uid=0) by (uid=0)')
  say(1, 'pam_unix(cron:session): session closed for user root')
}

/** `Mar  9 06:00:17`, as syslog writes it. */
function timeOf(at_s: number): string {
  const date = new Date(START + at_s * 1000)
  return `${MONTHS[date.getUTCMonth()]} ${String(date.getUTCDate()).padStart(2)} ${date.toISOString().slice(11, 19)}`
}

/** Process ids rise with time. */
const pids = new Map<number, number>()
let lastPid = 4021
function pidOf(process: number): number {
  const pid = pids.get(process) ?? (lastPid += between(2, 9))
  pids.set(process, pid)
  return pid
}

for (const line of lines.toSorted((left, right) => left.at - right.at)) {
  process.stdout.write(`${timeOf(line.at)} ${line.host} ${line.program}[${pidOf(line.process)}]: ${line.message}\n`)
}
