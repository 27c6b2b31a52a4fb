import { env } from 'cloudflare:workers'
import { describe, expect, test } from 'vitest'
import { parseSyslog, syslogTime } from '../../../examples/agents/ssh-guard/line.ts'
import { withDefaults, type Event } from '../../../src/core/event.ts'
import { guideCode } from '../../support/guide/guide-code.ts'
import { entriesOf, evict, freshScope, send, sendAndSettle, stubOf } from '../../support/scopes.ts'

// A type of its own would need a declaration for every file that is read as text.
const { default: sample }: { default: string } = await import('../../../examples/ssh-auth.log?raw')

const { default: readme }: { default: string } = await import('../../../README.md?raw')
const { default: agentsGuide }: { default: string } = await import('../../../docs/agents.md?raw')
const { default: greeterSource }: { default: string } = await import('../../support/guide/greeter.ts?raw')
const { default: triageSource }: { default: string } = await import('../../support/guide/triage.ts?raw')

const made = (scope: string, fields: Record<string, unknown>): Event =>
  withDefaults(fields, { now: Date.now(), source: 'test', scope }) as Event

const failures = (scope: string, address: string, count: number, from = 0): Event[] =>
  Array.from({ length: count }, (_, index) => {
    const at = Date.UTC(2026, 2, 9, 6) + (from + index) * 1000
    const line = `sshd[${1000 + from + index}]: Failed password for root from ${address} port 4242 ssh2`
    return made(scope, { type: 'log.line', host: 'web-1', line: `Mar  9 06:00:00 web-1 ${line}`, timestamp: new Date(at).toISOString() })
  })

const blocksIn = async (scope: string) =>
  (
    await env.DB.prepare('SELECT address, reason FROM blocks WHERE scope = ? ORDER BY address')
      .bind(scope)
      .all<{ address: string; reason: string }>()
  ).results

test('a burst of failed logins ends as a row in blocks, and as a reply', async () => {
  const scope = freshScope('ssh')
  const stub = stubOf(scope)
  const settled = await sendAndSettle(stub, ...failures(scope, '203.0.113.7', 6), ...failures(scope, '198.51.100.4', 2))
  expect(new Set(settled.map(({ status }) => status))).toEqual(new Set(['completed']))
  expect(await blocksIn(scope)).toEqual([
    { address: '203.0.113.7', reason: expect.stringContaining('failed logins from 2026-03-09T06:00:00.000Z') },
  ])
  expect(await entriesOf(stub, 'effect-ended')).toMatchObject([{ tool: 'block', status: 'ok', idempotence_key: 'block:203.0.113.7' }])
  expect(await entriesOf(stub, 'reply-sent')).toMatchObject([{ content: expect.stringContaining('203.0.113.7') }])
})

describe('the agents of the guides', () => {
  test.each([
    ['the README', readme, '### Write an agent', greeterSource],
    ['docs/agents.md', agentsGuide, '## Event types, filters, environment', triageSource],
  ])('%s shows the code that is tested here', (_, guide, heading, source) => {
    expect(guideCode(guide, heading)).toBe(source)
  })

  test('the README’s opens the door and answers, each time', async () => {
    const stub = stubOf(freshScope('door'))
    for (const content of ['open the front door', 'and once more']) {
      const said = made('door/1', { type: 'ws.message', connection_id: 'me', content })
      expect(await sendAndSettle(stub, said)).toMatchObject([{ status: 'completed', outcome: { by: 'turn' } }])
    }
    const opened = { tool: 'open_door', status: 'ok', output: { opened: 'front' } }
    expect(await entriesOf(stub, 'effect-ended')).toMatchObject([opened, opened])
    const replies = (await entriesOf(stub, 'reply-sent')).map(({ content }) => content)
    expect(replies).toEqual([1, 2].map(() => expect.stringContaining('The front door is open.')))
  })

  test('that of docs/agents.md sees its own events, filtered', async () => {
    const scope = freshScope('github')
    const issues = ['opened', 'closed'].map((action) => made(scope, { type: 'github.issue', action, title: 'the site is down' }))
    await stubOf(scope).configure({ max_attempts: 1 }, 'test')
    const settled = await sendAndSettle(stubOf(scope), ...issues)
    const error = expect.stringContaining('ISSUES_URL is not set')
    expect(settled).toMatchObject([{ status: 'dead_lettered', error }, { status: 'ignored' }])
    expect(await entriesOf(stubOf(scope), 'effect-ended')).toMatchObject([{ tool: 'label', status: 'failed', error }])
  })
})

test('the memory of the guard survives an eviction', async () => {
  const scope = freshScope('ssh')
  const stub = stubOf(scope)
  await sendAndSettle(stub, ...failures(scope, '203.0.113.7', 6), ...failures(scope, '198.51.100.4', 3))
  await evict(stub)
  await sendAndSettle(stub, ...failures(scope, '203.0.113.7', 6, 20), ...failures(scope, '198.51.100.4', 2, 20))
  expect((await blocksIn(scope)).map(({ address }) => address)).toEqual(['198.51.100.4', '203.0.113.7'])
  expect(await entriesOf(stub, 'effect-started')).toHaveLength(2)
})

test('a private address is blocked only where the scope allows it', async () => {
  const scope = freshScope('ssh')
  const stub = stubOf(scope)
  await sendAndSettle(stub, ...failures(scope, '10.0.0.7', 6))
  expect(await blocksIn(scope)).toEqual([])
  await stub.configure({ parameters: { allow_private: true } }, 'test')
  await sendAndSettle(stub, ...failures(scope, '10.0.0.7', 6, 60))
  expect(await blocksIn(scope)).toMatchObject([{ address: '10.0.0.7' }])
})

test('the sample log names eight attackers; noise is ignored', async () => {
  const scope = freshScope('ssh')
  const stub = stubOf(scope)
  const events = sample
    .trimEnd()
    .split('\n')
    .map((line) => made(scope, { type: 'log.line', host: 'web-1', line, timestamp: syslogTime(parseSyslog(line)?.time ?? '', Date.now()) }))
  const settled = await sendAndSettle(stub, ...events)
  expect(settled).toHaveLength(events.length)
  expect((await blocksIn(scope)).map(({ address }) => address)).toEqual([
    '192.0.2.201',
    '192.0.2.66',
    '198.51.100.140',
    '198.51.100.23',
    '198.51.100.77',
    '203.0.113.112',
    '203.0.113.45',
    '203.0.113.9',
  ])
  expect(settled.filter(({ status }) => status === 'ignored').length).toBeGreaterThan(200)
})

test('a chat answers each message once', async () => {
  const scope = freshScope('chat')
  const stub = stubOf(scope)
  const says = (content: string) => made(scope, { type: 'ws.message', connection_id: 'alice', content })
  await send(stub, says('one'))
  await sendAndSettle(stub, says('two'), says('three'))
  const replies = await entriesOf(stub, 'reply-sent')
  expect(replies.map(({ content }) => /You wrote "(\w+)"/.exec(content)?.[1])).toEqual(['one', 'two', 'three'])
})

test('every pattern of the team runs', async () => {
  const scope = freshScope('team')
  const stub = stubOf(scope)
  const patterns = ['sequential', 'parallel', 'first', 'supervisor', 'timeout', 'retry', 'routing']
  const tasks = patterns.map((pattern) => made(scope, { type: 'team.task', task: 'Plan the party', pattern }))
  const settled = await sendAndSettle(stub, ...tasks)
  expect(settled.map(({ status }) => status)).toEqual(patterns.map(() => 'completed'))
  const answers = (await entriesOf(stub, 'turn-ended')).flatMap(
    ({ result }) => (result as { answers: { pattern: string }[] } | null)?.answers ?? [],
  )
  expect(answers.map(({ pattern }) => pattern)).toEqual(patterns)
})
