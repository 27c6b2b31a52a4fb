import { describe, expect, test } from 'vitest'
import { howToTalk } from '../../../cli/demo/keep.ts'
import { report } from '../../../cli/demo/report.ts'
import { summarise, type Summary } from '../../../cli/demo/summary.ts'
import { plainPaint } from '../../../cli/lib/paint.ts'
import { defaultSettings } from '../../../src/contract/settings/settings.ts'
import type { ScopeState } from '../../../src/contract/scope.ts'
import { busyState } from './demo-state.ts'

const counters: ScopeState['counters'] = {
  accepted: 5,
  duplicates: 0,
  completed: 4,
  ignored: 1,
  dead_lettered: 0,
  cancelled: 0,
  retried: 0,
  turns: 2,
  turns_failed: 0,
  reflex_actions: 0,
  effects: 1,
  effects_failed: 0,
  model_calls: 1,
  input_tokens: 200,
  output_tokens: 50,
  cost_usd: 0,
  unpriced_calls: 0,
}
const scope: ScopeState = {
  scope: 'ssh/web-1',
  agent: 'ssh-guard',
  settings: defaultSettings,
  fired: { share: 0, decided: 0, model_calls: 1 },
  inbox: { pending: 0, processing: 0, delayed: 0 },
  context: { events: 0 },
  counters,
  turn: null,
  llm_tokens_remaining: null,
  waiting_for_model: null,
  sockets: 0,
  outbox: { waiting: 0, last_error: null },
  archive: null,
  spans: null,
  parked: [],
  last_seq: 9,
}
const letter = {
  id: '1',
  scope: 'demo/failing',
  event_id: 'fails-on-purpose',
  type: 'ws.message',
  attempts: 2,
  dead_lettered_at: '2026-11-21T07:41:53.000Z',
}

const summary = (change: Partial<Summary> = {}): Summary => ({
  ...summarise({
    file: 'examples/ssh-auth.log',
    left_out: {},
    speed: null,
    state: busyState(),
    scopes: [scope],
    dead_letters: [{ ...letter, error: 'Error: division by zero\n\n>    1 | 1 / 0' }],
    approvals: [],
    times: { start: 5000, send: 900, work: 1000, dead_letter: 20, all: 6100 },
  }),
  ...change,
})
const text = (of: Summary, columns = 80, kept = false) => report(of, { columns, paint: plainPaint, kept, curve: null })

describe('the summary', () => {
  test('counts by the scopes’ own counters', () => {
    const { events, decisions, blocked_by, reflexes, events_per_second, model, scopes } = summary()
    const counts = { accepted: 5, ignored: 1, by_reflex: 1, by_turn: 3, dead_lettered: 0, cancelled: 0, retried: 0, duplicates: 0 }
    expect(events).toEqual(counts)
    expect(decisions).toEqual({ all: 2, by_reflex: 1, by_turn: 1, without_model: 1 })
    expect(blocked_by).toEqual({ reflex: 1, turn: 1 })
    expect(reflexes).toMatchObject({ 'ssh-brute-force': { fired: 1, passed: 2, mean_us: 80, median_us: 0 } })
    expect(events_per_second).toBe(5)
    expect(model).toMatchObject({ name: 'offline', asked: false, note: 'an offline stand-in answered: rules, no network', calls: 1 })
    expect(scopes).toEqual([{ scope: 'ssh/web-1', agent: 'ssh-guard', counters }])
  })
})

describe('the report', () => {
  test('says what was read and blocked, that no model was asked, and what to do next', () => {
    expect(text(summary())).toEqual([
      'Reflex read 5 lines of examples/ssh-auth.log in 1.00 s and blocked 2 addresses.',
      '1 of 2 decisions took no model call; an offline stand-in (rules, no network)',
      'answered the other one.',
      '',
      '  events    5 = 1 filtered out + 1 by reflex + 3 by turn',
      '  reflexes  ssh-brute-force: 1 fired, 2 passed, 80 µs each',
      '  turns     1: 1 acted, 0 found nothing; windows of 2 to 2 events',
      '  model     offline stand-in; 1 call (about 250 tokens with a real model)',
      '  skills    incident.open: 1 ran, 1 refused; network.block: 1 to be approved',
      '  effects   2 started: 2 done',
      '  blocked   2 addresses: 1 by a reflex, 1 by the agent',
      '  rate      5 events/s, from the first request to the last outcome',
      '  time      6.10 s: start 5.00 s, events 1.00 s, dead letter 20 ms',
      "            turns 5 ms (model 5 ms, effects 5 ms), reflexes' effects 5 ms",
      '',
      'Blocked by the reflex',
      '  192.0.2.9    3 failed logins from Dec 10 07:10:02 to 07:10:09 as "oracle"',
      'Blocked by the agent',
      '  203.0.113.7  6 failed logins from Dec 10 07:13:43 to 07:13:56 as "root"',
      '',
      'What the agent said last',
      '  blocked it',
      '',
      'Dead letters',
      '  We sent one event that fails on purpose: the condition of demo/failing',
      '  divides by zero. After 2 attempts it is a dead letter (GET /v1/dlq):',
      '  fails-on-purpose: Error: division by zero',
      '',
      'Try next',
      '  npm run demo -- --speed 50                watch it, 50 lines a second',
      '  npm run demo -- --keep                    then talk to the server with curl',
      '  npm run demo -- --file /var/log/auth.log  read your own log',
      '  examples/reflexes/ssh-brute-force.js      read the reflex',
      '  examples/skills/                          read the skills',
      '  npm run dev                               write an agent: examples/agents/',
    ])
  })

  test('fits the terminal', () => {
    const many = Array.from({ length: 40 }, (_, index) => ({
      address: `2001:db8::${index}`,
      reason: 'x'.repeat(300),
      scope: 'ssh/a',
      at: '',
      by: 'turn' as const,
      attempts: index,
    }))
    const lines = text(summary({ blocked: many, file: 'a/path/'.repeat(9) }))
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(80)
    expect(lines).toContain('  and 28 more: --json lists them all')
  })

  test('lists the addresses with the most attempts first', () => {
    const block = (address: string, attempts: number) => ({ address, attempts, reason: 'r', scope: 's', at: '', by: 'turn' as const })
    const lines = text(summary({ blocked: [block('192.0.2.1', 5), block('192.0.2.2', 580), block('192.0.2.3', 20)] }))
    expect(lines.filter((line) => line.includes('in the log')).map((line) => line.trim().split(' ')[0])).toEqual([
      '192.0.2.2',
      '192.0.2.3',
      '192.0.2.1',
    ])
  })

  test('an address that several hosts blocked is one line', () => {
    const block = { address: '203.0.113.9', reason: 'again and again', at: '', by: 'turn' as const, attempts: 7 }
    const lines = text(
      summary({
        blocked: [
          { ...block, scope: 'ssh/a' },
          { ...block, scope: 'ssh/b' },
        ],
      }),
    )
    expect(lines[0]).toContain('blocked 1 address.')
    expect(lines).toContain('  203.0.113.9  7 in the log; on 2 hosts: again and again')
  })

  test('says where nothing was blocked, and why', () => {
    const { events } = summary()
    expect(text(summary({ blocked: [] }))).toContain('Nothing was blocked: no public address failed 5 times within 10 minutes.')
    expect(text(summary({ blocked: [], events: { ...events, by_turn: 0 } })).join()).toContain(
      'no line of this log is one that sshd writes',
    )
  })

  test('counts lines that were not sent, and tells a model that was asked', () => {
    const { lines, model } = summary()
    const all = text(
      summary({ lines: { ...lines, left_out: { 'too long': 2 } }, model: { ...model, name: 'm', asked: true, calls: 3 } }),
    ).join('\n')
    expect(all).toContain('Not sent: 2 lines (too long).')
    expect(all).toContain('1 of 2 decisions took no model call; the model m answered the other one.')
    expect(all).not.toContain('stand-in')
  })

  const waiting = {
    id: 'a-1',
    scope: 'ssh/web-1',
    skill_id: 'network.block',
    inputs: { network: '203.0.113.0/24', reason: 'x' },
    why: '3 addresses attacked',
    expires_at: '',
  }

  test('names what waits for approval; the command that approves it comes with a server that is kept', () => {
    const lines = text(summary({ approvals: [waiting] }), 200)
    expect(lines).toContain('  network.block 203.0.113.0/24 in ssh/web-1: 3 addresses attacked')
    expect(lines.join('\n')).toContain('npm run demo -- --keep leaves it up')
    expect(lines.join('\n')).not.toContain('/approve')
    const kept = howToTalk({ url: 'http://127.0.0.1:1', key: 'k', scope: 'ssh/web-1', approvals: [waiting] })
    expect(kept).toContain('curl -s -X POST -H "Authorization: Bearer $KEY" $URL/v1/approvals/a-1/approve')
    expect(text(summary({ approvals: [waiting] }), 80, true).join('\n')).not.toContain('/approve')
  })

  test('does not tell to keep a server that is kept', () => {
    expect(text(summary(), 80, true).join()).not.toContain('--keep')
  })
})
