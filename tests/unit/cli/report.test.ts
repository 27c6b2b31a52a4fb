import { describe, expect, test } from 'vitest'
import { howToTalk, report } from '../../../cli/demo/report.ts'
import type { DemoSummary } from '../../../cli/demo/summary.ts'
import { plainPaint } from '../../../cli/lib/paint.ts'
import { summaryOf } from './demo-state.ts'

const letter = {
  id: '1',
  scope: 'demo/failing',
  event_id: 'fails-on-purpose',
  type: 'ws.message',
  attempts: 2,
  dead_lettered_at: '2026-11-21T07:41:53.000Z',
}

const summary = (change: Partial<DemoSummary> = {}): DemoSummary => ({
  ...summaryOf({ dead_letters: [{ ...letter, error: 'Error: division by zero\n\n>    1 | 1 / 0' }] }),
  ...change,
})
const text = (of: DemoSummary, columns = 80, kept = false) => report(of, { columns, paint: plainPaint, kept, curve: ['the curve'] })

describe('the report', () => {
  test('says what was read and blocked, that no model was asked, and what to do next', () => {
    expect(text(summary())).toEqual([
      'Reflex read 5 lines of examples/ssh-auth.log in 1.00 s and blocked 2 addresses.',
      '1 of 2 decisions took no model call; an offline stand-in (rules, no network)',
      'answered the other one.',
      '',
      '  events    5 = 1 filtered out + 1 by reflex + 3 by turn; 5 a second',
      '  reflexes  ssh-brute-force: 1 fired, 2 passed, 80 µs each',
      '  turns     1: 1 acted; windows of 2 to 2 events',
      '  model     offline stand-in; 1 call (about 250 tokens with a real model)',
      '  skills    incident.open: 1 ran, 1 refused; network.block: 1 to be approved',
      '  blocked   1 by a reflex, 1 by the agent',
      '  dead      fails-on-purpose of demo/failing, after 2 attempts: Error: divisio…',
      '  time      6.10 s: start 5.00 s, events 1.00 s',
      '',
      'Blocked',
      '  192.0.2.9    reflex  3 failed logins from 12-10 07:10:02 to 12-10 07:10:09 a…',
      '  203.0.113.7  agent   6 failed logins from 12-10 07:13:43 to 12-10 07:13:56 a…',
      '',
      'the curve',
      '',
      'Try next',
      '  npm run demo -- --keep                    see it in the dashboard, and approve',
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
        blocked_by: { reflex: 0, turn: 1 },
        blocked: [
          { ...block, scope: 'ssh/a' },
          { ...block, scope: 'ssh/b' },
        ],
      }),
    )
    expect(lines[0]).toContain('blocked 1 address.')
    expect(lines).toContain('  203.0.113.9  agent   7 in the log; on 2 hosts: again and again')
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
    expect(lines).toContain('  approve   network.block 203.0.113.0/24 in ssh/web-1: 3 addresses attacked')
    expect(lines.join('\n')).toContain('npm run demo -- --keep ')
    expect(lines.join('\n')).not.toContain('/approve')
    const kept = howToTalk({ url: 'http://127.0.0.1:1', key: 'k', approvals: [waiting] })
    expect(kept).toContain('export REFLEX_URL="$URL" REFLEX_KEY="$KEY"')
    expect(kept).toContain('curl -s -X POST -H "Authorization: Bearer $KEY" $URL/v1/approvals/a-1/approve')
    expect(text(summary({ approvals: [waiting] }), 80, true).join('\n')).not.toContain('/approve')
  })

  test('untrusted input cannot control the terminal', () => {
    const evil = '\u001b[2J\u0007'
    const block = { address: evil, reason: evil, scope: 's', at: '', by: 'turn' as const, attempts: 1 }
    const dead_letters = [{ ...letter, error: evil }]
    const approvals = [{ ...waiting, inputs: { network: evil }, why: evil }]
    const printed = text(summary({ file: evil, blocked: [block], dead_letters, approvals }), 200).join('')
    // oxlint-disable-next-line no-control-regex -- control characters are what must not be there
    expect(printed).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
  })

  test('does not tell to keep a server that is kept', () => {
    expect(text(summary(), 80, true).join()).not.toContain('--keep')
  })
})
