import { describe, expect, test } from 'vitest'
import { lineEvent, scopeOf } from '../../../cli/demo/read-log.ts'

const NOW = Date.parse('2026-11-21T08:00:00Z')
const LINE = 'Nov 20 06:55:46 LabSZ sshd[24200]: Invalid user webmaster from 173.234.31.186'

describe('a line of an auth log', () => {
  test('is an event of its host, with the time of the line and an id that names its place', () => {
    expect(lineEvent(LINE, 7, NOW)).toEqual({
      id: 'line-7',
      type: 'log.line',
      scope: 'ssh/labsz',
      source: 'demo',
      timestamp: '2026-11-20T06:55:46.000Z',
      host: 'LabSZ',
      line: LINE,
    })
  })

  test('is of the year before where it would be in the future', () => {
    expect(lineEvent(LINE.replace('Nov 20', 'Dec 10'), 1, NOW)).toMatchObject({ timestamp: '2025-12-10T06:55:46.000Z' })
  })

  test('may have an ISO time and end with a carriage return', () => {
    const line = `2026-11-20T06:55:46+01:00 db sshd[1]: Connection closed by 192.0.2.1 [preauth]`
    expect(lineEvent(`${line}\r`, 1, NOW)).toMatchObject({ timestamp: '2026-11-20T05:55:46.000Z', host: 'db', line })
  })

  test.each([
    ['', 'empty'],
    ['  \r', 'empty'],
    ['-- Logs begin at Mon --', 'no syslog line'],
    ['Feb 31 06:55:46 host sshd[1]: x', 'no syslog line'],
    [`${LINE}${'x'.repeat(8192)}`, 'too long'],
    ['\u0000\u0001\ufffd', 'no syslog line'],
  ])('%j is left out: %s', (line, why) => {
    expect(lineEvent(line, 1, NOW)).toBe(why)
  })

  test.each([
    ['Web-1.Example.ORG', 'ssh/web-1.example.org'],
    ['höst/../x', 'ssh/h-st-..-x'],
    ['h'.repeat(300), `ssh/${'h'.repeat(100)}`],
  ])('host %j has a scope whose name is allowed', (host, scope) => {
    expect(scopeOf(host)).toBe(scope)
    expect(scopeOf(host)).toMatch(/^[A-Za-z0-9._:@/-]{1,128}$/)
  })
})
