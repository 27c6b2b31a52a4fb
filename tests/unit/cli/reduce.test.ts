import { describe, expect, test } from 'vitest'
import { reduce } from '../../../cli/demo/reduce.ts'
import { reflexFigures } from '../../../cli/demo/reflex-tally.ts'
import { addressesBy, tallyOf, totals } from '../../../cli/demo/state.ts'
import { after, busyState, newState, QUICK_REASON, REASON } from './demo-state.ts'
import {
  accepted,
  blockEnded,
  blockStarted,
  buried,
  modelCalled,
  reflexFired,
  reflexPassed,
  retried,
  turnEnded,
  turnFailed,
  turnStarted,
} from './log-entries.ts'

const SCOPE = 'ssh/web-1'

describe('the state of the demo', () => {
  test('counts each event once, by its outcome', () => {
    const counts = { accepted: 5, ignored: 1, reflexed: 1, considered: 2, dead_lettered: 0, cancelled: 0, retried: 0, waiting: 1 }
    expect(totals(busyState())).toEqual(counts)
  })

  test('an entry that comes again after a resume changes nothing', () => {
    const entry = accepted()
    const once = reduce(newState(), SCOPE, entry)
    expect(reduce(once, SCOPE, entry)).toBe(once)
  })

  test('is never changed in place', () => {
    const state = newState()
    const before = structuredClone(state)
    after(state, SCOPE, [accepted(), turnStarted(1), blockStarted('192.0.2.1', 'x'), turnEnded({ blocked: ['192.0.2.1'] })])
    expect(state).toEqual(before)
  })

  test('knows what was blocked, by whom, and why', () => {
    const where = { scope: SCOPE, at: '2026-11-21T07:41:52.781Z' }
    expect(busyState().blocked).toEqual([
      { address: '192.0.2.9', reason: QUICK_REASON, by: 'reflex', attempts: 0, ...where },
      { address: '203.0.113.7', reason: REASON, by: 'turn', attempts: 0, ...where },
    ])
  })

  test('an address that two scopes blocked is counted for who was first', () => {
    const [by_reflex, by_turn] = [{ by: 'reflex:r@1' }, { turn_id: 'turn' }].map((cause) => blockStarted('192.0.2.1', 'x', cause))
    const first = after(
      newState(['a', 'b']),
      'a',
      [by_turn, blockEnded('192.0.2.1')].flatMap((entry) => entry ?? []),
    )
    const { blocked } = after(
      first,
      'b',
      [by_reflex, blockEnded('192.0.2.1')].flatMap((entry) => (entry ? [{ ...entry, seq: entry.seq + 1000 }] : [])),
    )
    expect(blocked.map(({ by }) => by)).toEqual(['turn', 'reflex'])
    expect([addressesBy(blocked, 'reflex'), addressesBy(blocked, 'turn')]).toEqual([0, 1])
  })

  test('a block that failed blocked nothing', () => {
    expect(after(newState(), SCOPE, [blockStarted('192.0.2.1', 'x'), blockEnded('192.0.2.1', 'failed')]).blocked).toEqual([])
  })

  test('counts what a reflex did, but not what it does in shadow', () => {
    const { reflexes } = after(newState(), SCOPE, [
      reflexFired('192.0.2.1', 1000),
      reflexFired('192.0.2.1', 0, 'shadow'),
      reflexPassed('null'),
      reflexPassed('error'),
      reflexPassed('null'),
    ])
    expect(Object.entries(reflexes).map(([id, tally]) => ({ id, ...reflexFigures(tally) }))).toEqual([
      { id: 'ssh-brute-force', fired: 1, passed: 3, troubled: 1, mean_us: 250, median_us: 0, median_fuel: expect.closeTo(60_000, -4) },
    ])
  })

  test('knows which decisions needed no model', () => {
    const entries = [turnEnded(null), turnEnded(null, 0), turnFailed('no')]
    expect(after(newState(), SCOPE, entries).decided).toEqual({ turns: 2, without_model: 1 })
  })

  test('tells turns that acted, found nothing and failed apart, and how much they saw', () => {
    const entries = [turnStarted(9), turnEnded(null), turnStarted(40), turnEnded({ blocked: [] }), turnStarted(3), turnFailed('no')]
    const { turns, windows, decisions } = after(newState(), SCOPE, entries)
    expect(turns).toEqual({ started: 3, acted: 1, none: 1, failed: 1, other: 0 })
    expect(windows).toEqual({ smallest: 3, largest: 40 })
    expect(decisions.map(({ window }) => window)).toEqual([9, 40, 3])
  })

  test('a turn in flight shows its window until it ends', () => {
    const started = after(newState(), SCOPE, [turnStarted(12)])
    expect(tallyOf(started, SCOPE).window).toBe(12)
    expect(tallyOf(after(started, SCOPE, [turnEnded(null)]), SCOPE).window).toBeNull()
  })

  test('a result of another shape is no trouble', () => {
    const { decisions } = after(newState(), SCOPE, [turnEnded('done'), turnEnded({ blocked: [1, 'x'], summary: 2 })])
    expect(decisions).toMatchObject([
      { blocked: [], why: '' },
      { blocked: ['x'], why: '' },
    ])
  })

  test('the event that fails on purpose is kept out of the log’s numbers', () => {
    const { turns, retries, dead, last_ended_at } = after(newState(), 'demo/failing', [
      accepted(),
      turnStarted(1),
      turnFailed('no'),
      retried('no'),
      buried('no'),
    ])
    expect({ turns, last_ended_at }).toMatchObject({ turns: { started: 0, failed: 0 }, last_ended_at: null })
    expect([retries.length, dead.length]).toEqual([1, 1])
  })

  test('an unknown price makes the cost unknown, not zero', () => {
    expect(after(newState(), SCOPE, [modelCalled(0.25), modelCalled(0.5)]).model).toMatchObject({
      calls: 2,
      cost_usd: 0.75,
      input_tokens: 400,
    })
    expect(after(newState(), SCOPE, [modelCalled(0.25), modelCalled(null)]).model.cost_usd).toBeNull()
  })
})
