import { describe, expect, test } from 'vitest'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import { counters, QUICK_REASON, REASON, summaryOf } from './demo-state.ts'
import { blockEnded, blockStarted, modelCalled, reflexFired, reflexPassed, turnEnded, turnFailed, turnStarted } from './log-entries.ts'

const SCOPE = 'ssh/web-1'
const of = (...entries: LogEntry[]) => summaryOf({ logs: { [SCOPE]: entries } })

describe('the summary of the demo', () => {
  test('counts by the scopes’ own counters, and decisions by their logs', () => {
    const { events, decisions, blocked_by, reflexes, events_per_second, model, scopes, skills, effects, times_ms } = summaryOf()
    const counts = { accepted: 5, ignored: 1, by_reflex: 1, by_turn: 3, dead_lettered: 0, cancelled: 0, retried: 0, duplicates: 0 }
    expect(events).toEqual(counts)
    expect(decisions).toEqual({ all: 2, by_reflex: 1, by_turn: 1, without_model: 1 })
    expect(blocked_by).toEqual({ reflex: 1, turn: 1 })
    expect(reflexes).toMatchObject({ 'ssh-brute-force': { fired: 1, passed: 2, mean_us: 80, median_us: 0 } })
    expect(events_per_second).toBe(5)
    expect(model).toMatchObject({ name: 'offline', asked: false, note: 'an offline stand-in answered: rules, no network', calls: 1 })
    expect(scopes).toEqual([{ scope: SCOPE, agent: 'ssh-guard', counters }])
    expect(skills).toEqual({
      'incident.open': { ran: 1, failed: 0, refused: 1, to_approve: 0 },
      'network.block': { ran: 0, failed: 0, refused: 0, to_approve: 1 },
    })
    expect(effects).toEqual({ started: 2, ok: 2, failed: 0, unknown: 0, reused: 0 })
    expect(times_ms).toEqual({
      start: 5000,
      send: 900,
      work: 1000,
      dead_letter: 20,
      all: 6100,
      turns: 5,
      model: 5,
      effects: 5,
      reflex_effects: 5,
    })
  })

  test('knows what was blocked, by whom, and why', () => {
    const where = { scope: SCOPE, at: '2026-11-21T07:41:52.781Z' }
    expect(summaryOf({ attempts: [['192.0.2.9', 3]] }).blocked).toEqual([
      { address: '192.0.2.9', reason: QUICK_REASON, by: 'reflex', attempts: 3, ...where },
      { address: '203.0.113.7', reason: REASON, by: 'turn', attempts: 0, ...where },
    ])
  })

  test('an address that two scopes blocked is counted for who was first', () => {
    const [by_reflex, by_turn] = [{ by: 'reflex:r@1' }, { turn_id: 'turn' }].map((cause, index) => {
      const at = `2026-11-21T07:41:5${3 - index}.000Z`
      return [blockStarted('192.0.2.1', 'x', cause), blockEnded('192.0.2.1')].map((entry) => ({ ...entry, at, effect_id: `e-${index}` }))
    })
    const { blocked, blocked_by } = summaryOf({ logs: { a: by_reflex ?? [], b: by_turn ?? [] } })
    expect(blocked.map(({ by }) => by)).toEqual(['turn', 'reflex'])
    expect(blocked_by).toEqual({ reflex: 0, turn: 1 })
  })

  test('a block that failed blocked nothing', () => {
    const { blocked, effects } = of(blockStarted('192.0.2.1', 'x'), blockEnded('192.0.2.1', 'failed'))
    expect(blocked).toEqual([])
    expect(effects).toMatchObject({ started: 1, ok: 0, failed: 1 })
  })

  test('counts what a reflex did, but not what it does in shadow', () => {
    const { reflexes } = of(
      reflexFired('192.0.2.1', 1000),
      reflexFired('192.0.2.1', 0, 'shadow'),
      reflexPassed('null'),
      reflexPassed('error'),
      reflexPassed('null'),
    )
    expect(reflexes).toEqual({
      'ssh-brute-force': { fired: 1, passed: 3, troubled: 1, mean_us: 250, median_us: 0, median_fuel: expect.closeTo(60_000, -4) },
    })
  })

  test('knows which decisions needed no model', () => {
    const { decisions } = of(turnEnded(null), turnEnded(null, 0), turnFailed('no'))
    expect(decisions).toEqual({ all: 2, by_reflex: 0, by_turn: 2, without_model: 1 })
  })

  test('tells turns that acted, found nothing and failed apart, and how much they saw', () => {
    const entries = [turnStarted(9), turnEnded(null), turnStarted(40), turnEnded({ blocked: [] }), turnStarted(3), turnFailed('no')]
    expect(of(...entries).turns).toEqual({ started: 3, acted: 1, none: 1, failed: 1, other: 0, smallest_window: 3, largest_window: 40 })
    expect(of().turns).toMatchObject({ smallest_window: 0, largest_window: 0 })
  })

  test('quotes the last turn that acted; a result of another shape is no trouble', () => {
    expect(summaryOf().said).toBe('blocked it')
    expect(of(turnEnded({ summary: 'one' }), turnEnded('done'), turnEnded({ summary: 2 }), turnEnded(null)).said).toBe('one')
    expect(of(turnEnded('done')).said).toBeNull()
  })

  test('an unknown price makes the cost unknown, not zero', () => {
    expect(of(modelCalled(0.25), modelCalled(0.5)).model).toMatchObject({ calls: 2, cost_usd: 0.75, input_tokens: 400 })
    expect(of(modelCalled(0.25), modelCalled(null)).model.cost_usd).toBeNull()
  })
})
