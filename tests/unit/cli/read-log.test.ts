import { expect, test } from 'vitest'
import { eventsOf, readAuthLog } from '../../../cli/demo/read-log.ts'

const NOW = Date.parse('2026-11-21T08:00:00Z')
const line = (host: string, second = 10) => `Nov 20 06:55:${second} ${host} sshd[1]: Connection closed by 192.0.2.1 [preauth]`
const read = (text: string, limit = 100) => eventsOf(text, { path: 'auth.log', limit, now: NOW })

test('every line becomes an event in the order of the file, and its host a scope', () => {
  const { events, scopes, left_out } = read(`${line('a')}\n${line('B', 11)}\n${line('a', 12)}\n`)
  expect(events.map(({ id, scope }) => [id, scope])).toEqual([
    ['line-1', 'ssh/a'],
    ['line-2', 'ssh/b'],
    ['line-3', 'ssh/a'],
  ])
  expect(scopes).toEqual(['ssh/a', 'ssh/b'])
  expect(left_out).toEqual({})
})

test('failed logins are counted by address, repeated ones included', () => {
  const failed = (message: string) => `Nov 20 06:55:10 a sshd[1]: ${message}`
  const guess = 'Failed password for root from 192.0.2.9 port 22 ssh2'
  const { attempts } = read(`${failed(guess)}\n${failed(`message repeated 4 times: [ ${guess}]`)}\n${line('a')}\n`)
  expect(Array.from(attempts)).toEqual([['192.0.2.9', 5]])
})

test('skipped lines are counted by reason', () => {
  const { events, left_out } = read(`no header\n${line('a')}\n\n${line('a')}\n${line('a')}\n`, 2)
  expect(events.map(({ id }) => id)).toEqual(['line-2', 'line-4'])
  expect(left_out).toEqual({ 'no syslog line': 1, 'beyond --limit': 1 })
})

test('lines of more hosts than can be followed are left out', () => {
  const hosts = Array.from({ length: 103 }, (_, index) => line(`host-${index}`))
  const { scopes, left_out } = read(hosts.join('\n'), 1000)
  expect(scopes).toHaveLength(100)
  expect(left_out).toEqual({ 'of too many hosts': 3 })
})

test.each([
  ['', 'is empty'],
  [' \n \n', 'is empty'],
  ['\u0000\u0001\u0002\n\ufffd', 'is not an sshd auth log: none of its 2 lines'],
  ['one\ntwo\n', 'none of its 2 lines'],
])('%j holds nothing to send, which is said', (text, message) => {
  expect(() => read(text)).toThrow(message)
})

test('a missing file is named, and a folder is reported as a folder', async () => {
  await expect(readAuthLog({ file: '/nowhere/auth.log', limit: 1 }, NOW)).rejects.toThrow('There is no file /nowhere/auth.log')
  await expect(readAuthLog({ file: '/', limit: 1 }, NOW)).rejects.toThrow('is a folder')
})

test('the project has an example to read', async () => {
  const { name, events } = await readAuthLog({ file: null, limit: 1000 }, NOW)
  expect(name).toBe('examples/ssh-auth.log')
  expect(events.length).toBeGreaterThan(100)
})
