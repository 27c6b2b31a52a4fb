import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseSshMessage, parseSyslog, syslogTime } from '../../../../examples/agents/ssh-guard/line.ts'

describe('the header of a log line', () => {
  const message = 'Accepted publickey for bob from 192.0.2.7 port 5 ssh2'
  it.each([
    ['Mar  9 06:55:46 web-1 sshd[24200]: ', { time: 'Mar  9 06:55:46', host: 'web-1', program: 'sshd', pid: 24_200 }],
    ['<38>Dec 10 06:55:46 web-1 sshd-session[7]: ', { time: 'Dec 10 06:55:46', host: 'web-1', program: 'sshd-session', pid: 7 }],
    ['2026-03-09T06:55:46.123456+01:00 db sshd[1]: ', { time: '2026-03-09T06:55:46.123456+01:00', host: 'db', program: 'sshd', pid: 1 }],
    ['Mar  9 06:55:46 web-1 sshd: ', { time: 'Mar  9 06:55:46', host: 'web-1', program: 'sshd', pid: null }],
  ])('is read: %s', (header, expected) => {
    expect(parseSyslog(header + message)).toEqual({ ...expected, message })
  })

  it('ends before a carriage return', () => {
    expect(parseSyslog(`Mar  9 06:55:46 web-1 sshd[1]: ${message} \r\n`)?.message).toBe(message)
  })

  it.each(['', 'hello', message, 'Mar 9', 'Mar  9 06:55:46 web-1 sshd[1]', `Mar  9 06:55:46 web-1 sshd[1]: two\nlines`])(
    'is not in %j',
    (line) => {
      expect(parseSyslog(line)).toBeNull()
    },
  )
})

describe('the time of a log line', () => {
  const march = Date.UTC(2026, 2, 9)
  it.each([
    ['Mar  8 23:59:59', march, '2026-03-08T23:59:59.000Z'],
    ['Dec 10 06:55:46', march, '2025-12-10T06:55:46.000Z'],
    ['Mar  9 20:00:00', march, '2026-03-09T20:00:00.000Z'],
    ['Mar 11 20:00:00', march, '2025-03-11T20:00:00.000Z'],
    ['Jan  1 00:30:00', Date.UTC(2025, 11, 31, 23, 50), '2026-01-01T00:30:00.000Z'],
    ['Feb 29 10:00:00', march, '2024-02-29T10:00:00.000Z'],
    ['2026-03-09T06:55:46.123456+02:00', march, '2026-03-09T04:55:46.123Z'],
  ])('%s is in the latest year that has it', (time, now, expected) => {
    expect(syslogTime(time, now)).toBe(expected)
  })

  it.each([
    'Feb 30 10:00:00',
    'Xyz  1 10:00:00',
    'Mar  9 25:00:00',
    'Mar  0 10:00:00',
    'yesterday',
    '2026-13-01T00:00:00Z',
    '2026-03-09T06:55:46',
  ])('%s is not a time', (time) => {
    expect(syslogTime(time, march)).toBeNull()
  })
})

describe('the lines of sshd about a login', () => {
  const at = '203.0.113.7'
  it.each([
    [`Failed password for root from ${at} port 38926 ssh2`, 'failed', 'root', 1],
    [`Failed password for invalid user web master from ${at} port 38926 ssh2`, 'failed', 'web master', 1],
    [`Failed password for invalid user  0101 from ${at} port 36279 ssh2`, 'failed', '0101', 1],
    [`Failed password for invalid user  from ${at} port 36279 ssh2`, 'failed', '', 1],
    [`Failed none for invalid user 0 from ${at} port 51889 ssh2`, 'failed', '0', 1],
    [`Failed keyboard-interactive/pam for root from ${at} port 1 ssh2`, 'failed', 'root', 1],
    [`Failed publickey for bob from ${at} port 1 ssh2: RSA SHA256:abc`, 'failed', 'bob', 0],
    [`message repeated 5 times: [ Failed password for root from ${at} port 42393 ssh2]`, 'failed', 'root', 5],
    [`Invalid user chen from ${at}`, 'invalid-user', 'chen', 0],
    [`Invalid user chen from ${at} port 77`, 'invalid-user', 'chen', 0],
    [`User root from ${at} not allowed because not listed in AllowUsers`, 'invalid-user', 'root', 0],
    [`error: maximum authentication attempts exceeded for root from ${at} port 5 ssh2 [preauth]`, 'too-many', 'root', 0],
    [`error: maximum authentication attempts exceeded for invalid user pi from ${at} port 5 ssh2 [preauth]`, 'too-many', 'pi', 0],
    [`Disconnecting authenticating user root ${at} port 5: Too many authentication failures [preauth]`, 'too-many', 'root', 0],
    [`Connection closed by authenticating user root ${at} port 5 [preauth]`, 'left', 'root', 0],
    [`Connection reset by invalid user pi ${at} port 5 [preauth]`, 'left', 'pi', 0],
    [`Disconnected from invalid user pi ${at} port 5 [preauth]`, 'left', 'pi', 0],
    [`Connection closed by ${at} [preauth]`, 'closed', null, 0],
    [`Connection closed by ${at} port 5 [preauth]`, 'closed', null, 0],
    [`Received disconnect from ${at}: 11: Bye Bye [preauth]`, 'closed', null, 0],
    [`Received disconnect from ${at} port 5:11: Bye Bye [preauth]`, 'closed', null, 0],
    [`error: Received disconnect from ${at}: 3: com.jcraft.jsch.JSchException: Auth fail [preauth]`, 'closed', null, 0],
    [`reverse mapping checking getaddrinfo for ns.example.com [${at}] failed - POSSIBLE BREAK-IN ATTEMPT!`, 'break-in', null, 0],
    [`reverse mapping checking getaddrinfo for ns.example.com [${at}] failed.`, 'break-in', null, 0],
    [`Address ${at} maps to ns.example.com, but this does not map back to the address.`, 'break-in', null, 0],
    [`Accepted password for bob from ${at} port 49116 ssh2`, 'accepted', 'bob', 0],
    [`Accepted publickey for bob from ${at} port 49116 ssh2: ED25519 SHA256:abc`, 'accepted', 'bob', 0],
  ])('%s', (message, kind, user, times) => {
    expect(parseSshMessage(message)).toEqual({ kind, address: at, user, times })
  })

  it.each([
    ['Failed password for root from 2001:db8::7 port 1 ssh2'],
    ['Received disconnect from 2001:db8::7 port 22:11: Bye [preauth]'],
    ['Received disconnect from 2001:db8::7: 11: Bye [preauth]'],
    ['Connection closed by authenticating user root 2001:db8::7 port 5 [preauth]'],
  ])('of an IPv6 address: %s', (message) => {
    expect(parseSshMessage(message)?.address).toBe('2001:db8::7')
  })

  it.each([
    'pam_unix(sshd:auth): check pass; user unknown',
    `pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=${at}  user=root`,
    'pam_unix(sshd:session): session opened for user bob by (uid=0)',
    'input_userauth_request: invalid user webmaster [preauth]',
    `PAM 5 more authentication failures; logname= uid=0 euid=0 tty=ssh ruser= rhost=${at}`,
    'PAM service(sshd) ignoring max retries; 6 > 3',
    'Disconnecting: Too many authentication failures for root [preauth]',
    `Did not receive identification string from ${at}`,
    `Received disconnect from ${at}: 11: disconnected by user`,
    `Disconnected from user bob ${at} port 5`,
    'fatal: Write failed: Connection reset by peer [preauth]',
    'Server listening on 0.0.0.0 port 22.',
    'Failed password for root from UNKNOWN port 65535 ssh2',
    'Failed password for root from 300.1.2.3 port 1 ssh2',
    '',
  ])('is nothing in %j', (message) => {
    expect(parseSshMessage(message)).toBeNull()
  })
})

describe('a user name that looks like a log line', () => {
  const [real, forged] = ['203.0.113.7', '198.51.100.1']
  it.each([
    `Failed password for invalid user x from ${forged} port 1 ssh2 from ${real} port 2 ssh2`,
    `Failed password for invalid user x from ${forged} port 1 ssh2: y from ${real} port 2 ssh2`,
    `Invalid user x from ${forged} from ${real}`,
    `Invalid user x from ${forged} port 1 from ${real} port 2`,
    `error: maximum authentication attempts exceeded for invalid user x from ${forged} port 1 ssh2 [preauth] from ${real} port 2 ssh2 [preauth]`,
    `Connection closed by invalid user x ${forged} port 1 [preauth] ${real} port 2 [preauth]`,
    `Disconnecting invalid user x ${forged} port 1: Too many authentication failures [preauth] ${real} port 2: Too many authentication failures [preauth]`,
    `Received disconnect from ${real} port 2:11: from ${forged} port 1:11: bye [preauth]`,
  ])('does not forge the address: %s', (message) => {
    expect(parseSshMessage(message)?.address).toBe(real)
  })

  it('does not forge the kind', () => {
    expect(
      parseSshMessage(`Invalid user message repeated 99 times: [ Failed password for root from ${forged} port 1 ssh2] from ${real}`),
    ).toMatchObject({
      kind: 'invalid-user',
      address: real,
      times: 0,
    })
  })

  it('takes no long time, whatever it repeats', () => {
    const started = performance.now()
    for (const piece of [' from 198.51.100.1 port 1 ssh2', ' from', ': 1', ' port 1: ', '[preauth] ', '(']) {
      for (const begin of [
        'Failed password for ',
        'Invalid user ',
        'Received disconnect from ',
        'Disconnecting invalid user ',
        'Connection closed by ',
      ]) {
        parseSshMessage(`${begin}${piece.repeat(8000 / piece.length)}\0`)
      }
    }
    // Each takes well under 1 ms; backtracking over 8,000 characters would take minutes.
    expect(performance.now() - started).toBeLessThan(2000)
  })
})

it('every line of the sample log has a header and a time', () => {
  const lines = readFileSync(join(import.meta.dirname, '../../../../examples/ssh-auth.log'), 'utf8')
    .trimEnd()
    .split('\n')
  const headers = lines.map(parseSyslog)
  expect(lines.length).toBeGreaterThan(400)
  expect(headers.filter((header) => header === null || syslogTime(header.time, Date.UTC(2026, 2, 10)) === null)).toEqual([])
})
