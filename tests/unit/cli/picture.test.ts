import { describe, expect, test } from 'vitest'
import { picture, type View } from '../../../cli/demo/picture.ts'
import { plainPaint } from '../../../cli/lib/paint.ts'
import { after, busyState, newState } from './demo-state.ts'
import { accepted, blockStarted, turnEnded, turnStarted } from './log-entries.ts'

const view = (change: Partial<View> = {}): View => ({
  state: busyState(),
  phase: 'waiting',
  file: 'examples/ssh-auth.log',
  elapsed_ms: 7321,
  columns: 80,
  rows: 24,
  paint: plainPaint,
  ...change,
})

describe('the live picture', () => {
  test('shows what was sent, what became of it, and what was decided', () => {
    expect(picture(view())).toEqual([
      'Reflex demo                               waiting for the last outcomes  7.30 s',
      'examples/ssh-auth.log, 5 lines of 1 host; the real Worker, on this machine',
      '',
      `lines    ${'█'.repeat(57)}  5 of 5 sent`,
      'events   5 = 1 filtered out + 1 by reflex + 2 by turn + 1 waiting',
      'reflexes ssh-brute-force: 1 fired, 2 passed, 80 µs each',
      'turns    1: 1 acted, 0 found nothing; windows of 2 to 2 events',
      'model    offline stand-in; 1 call (about 250 tokens with a real model)',
      'skills   incident.open: 1 ran, 1 refused; network.block: 1 to be approved',
      'effects  2 started: 2 done',
      'blocked  2 addresses: 1 by a reflex, 1 by the agent',
      'failures 1 retry, 1 dead letter; one event is sent to fail',
      '',
      'scope                 accepted  ignored  reflex  by turns  waiting  dead  turns',
      'ssh/web-1                    5        1       1         2        1     0      1',
      'demo/failing                 1        0       0         0        0     1      2',
      '',
      'latest decisions',
      '07:41:52.781  ssh/web-1     reflex     blocked 192.0.2.9',
      '07:41:52.781  ssh/web-1     saw 2      blocked 203.0.113.7',
      '07:41:52.781  demo/failing  saw 1      failed on purpose: E…d: division by zero',
      '07:41:52.781  demo/failing  saw 1      failed on purpose: E…d: division by zero',
    ])
  })

  test('says before the first line what is to come', () => {
    expect(picture(view({ state: newState(), phase: 'starting' })).join('\n')).toContain('What comes, once the server is up')
  })

  const scopes = Array.from({ length: 30 }, (_, index) => `ssh/a-host-with-a-rather-long-name-number-${index}`)
  const entries = Array.from({ length: 8 }, (_, index) => [
    accepted(),
    turnStarted(5),
    turnEnded({ blocked: [`192.0.2.${index}`, '2001:db8::1', '203.0.113.77', '198.51.100.8'] }),
  ]).flat()
  let crowded = { ...newState(scopes), lines: { total: 100_000, sent: 99_999 } }
  for (const scope of scopes)
    crowded = after(crowded, scope, [accepted(), ...entries.map((entry) => ({ ...entry, seq: entry.seq + 1_000_000 }))])

  test.each([
    [80, 24],
    [120, 40],
    [40, 10],
    [300, 100],
    [60, 5],
  ])('is narrower than %i columns and lower than %i rows, however much there is', (columns, rows) => {
    for (const state of [crowded, busyState(), newState()]) {
      const lines = picture(view({ state, columns, rows, file: '/a/very/long/path/'.repeat(9) }))
      expect(lines.length).toBeLessThan(rows)
      expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(columns - 1)
    }
  })

  test('untrusted input cannot control the terminal', () => {
    const state = after({ ...newState(), lines: { total: 1, sent: 1 } }, 'ssh/web-1', [
      accepted(),
      blockStarted('\u001b[2J192.0.2.1', '\u0007'),
      turnEnded({ blocked: ['\u001b[2J192.0.2.1'] }),
    ])
    // oxlint-disable-next-line no-control-regex -- control characters are what must not be there
    expect(picture(view({ state, file: 'a\u001b]0;title\u0007' })).join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
  })

  test('colours nothing but what it paints, so that the words stay', () => {
    const painted = picture(view({ paint: (colour, text) => `<${colour}>${text}</>` }))
    expect(painted.map((line) => line.replaceAll(/<\w*\/?>|<\/>/g, ''))).toEqual(picture(view()))
  })
})
