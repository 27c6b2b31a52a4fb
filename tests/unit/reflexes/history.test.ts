import { describe, expect, test } from 'vitest'
import type { Action } from '../../../src/contract/action.ts'
import { ReflexHistory } from '../../../src/reflexes/history.ts'

const MINUTE = 60_000
const NOW = 100 * MINUTE
const reply: Action = { action_type: 'reply', content: 'hello' }
const write: Action = { action_type: 'write_artifact', artifact_id: 'r', artifact_type: 'reflex', content: '' }

/** A history of one action at each of these times, in ms. */
function historyOf(action: Action, ...times: number[]): ReflexHistory {
  const history = new ReflexHistory()
  for (const [index, at] of times.entries()) history.fired({ at, event_id: `e${index}`, action })
  return history
}

describe('the history of a reflex', () => {
  test('counts the actions of a minute, and begins again in the next', () => {
    expect(new ReflexHistory().pace).toEqual({ last_at: null, minute: 0, fired: 0 })
    expect(historyOf(reply, NOW, NOW + MINUTE - 1).pace).toEqual({ last_at: NOW + MINUTE - 1, minute: 100, fired: 2 })
    expect(historyOf(reply, NOW, NOW + MINUTE).pace).toEqual({ last_at: NOW + MINUTE, minute: 101, fired: 1 })
  })

  test('shows the last ten actions, the oldest first, with their age in seconds', () => {
    const times = Array.from({ length: 12 }, (_, index) => NOW + index * 1000)
    const recent = historyOf(reply, ...times).recent(NOW + 10_500)
    expect(recent.map(({ event_id, seconds_ago }) => [event_id, seconds_ago])).toEqual([
      ['e2', 8.5],
      ['e3', 7.5],
      ['e4', 6.5],
      ['e5', 5.5],
      ['e6', 4.5],
      ['e7', 3.5],
      ['e8', 2.5],
      ['e9', 1.5],
      ['e10', 0.5],
      ['e11', 0],
    ])
    expect(recent[0]).toEqual({ at: new Date(NOW + 2000).toISOString(), seconds_ago: 8.5, event_id: 'e2', action: reply })
  })

  test('changes no copy of it', () => {
    const history = historyOf(reply, NOW)
    const copy = history.copy()
    history.fired({ at: NOW, event_id: 'later', version: 3, action: reply })
    expect([copy.record.fires.length, history.record.fires.length]).toEqual([1, 2])
    expect(history.record.fires.map(({ version }) => version)).toEqual([undefined, 3])
    expect(Object.keys(history.record.fires[0] ?? {})).not.toContain('version')
  })
})

describe('a reflex is held back', () => {
  test('until its cooldown is over', () => {
    const history = historyOf(reply, NOW)
    const reference = { id: 'a', cooldown_s: 2 }
    expect([NOW, NOW + 1999, NOW + 2000].map((now) => history.heldBack(reference, now))).toEqual(['cooldown', 'cooldown', null])
    expect([new ReflexHistory().heldBack(reference, 1000), history.heldBack({ id: 'a' }, NOW)]).toEqual([null, null])
    expect(history.heldBack({ id: 'a', cooldown_s: 0 }, NOW)).toBeNull()
  })

  test('not for as long as a clock was ahead', () => {
    const [history, five] = [historyOf(reply, NOW), historyOf(write, NOW, NOW, NOW, NOW, NOW)]
    const before = NOW - 5000 * MINUTE
    expect([history.heldBack({ id: 'a', cooldown_s: 60 }, before), five.tooManyWritten(write, before)]).toEqual([null, null])
    expect(history.heldBack({ id: 'a', cooldown_s: 60 }, NOW - 10_000)).toBe('cooldown')
    expect(history.recent(before)).toMatchObject([{ seconds_ago: 300_000 }])
  })

  test('once it has fired as often in a minute as it may', () => {
    const history = historyOf(reply, NOW, NOW + 1)
    const at = (rate: number, now: number) => history.heldBack({ id: 'a', rate }, now)
    expect([at(2, NOW + 2), at(3, NOW + 2), at(2, NOW + MINUTE), at(1, NOW + MINUTE - 1)]).toEqual(['rate', null, null, 'rate'])
    const fast = (fired: number) => new ReflexHistory({ fires: [], last_at: NOW, minute: 100, fired }).heldBack({ id: 'a' }, NOW)
    expect([fast(5999), fast(6000)]).toEqual([null, 'rate'])
  })

  test('from writing more than five artifacts within a minute', () => {
    const five = historyOf(write, NOW, NOW, NOW, NOW, NOW)
    const refused = { ok: false, detail: 'it wrote 5 artifacts within a minute' }
    expect([five.tooManyWritten(write, NOW + MINUTE - 1), five.tooManyWritten(write, NOW + MINUTE)]).toEqual([refused, null])
    expect([five.tooManyWritten(reply, NOW), historyOf(write, NOW, NOW, NOW, NOW).tooManyWritten(write, NOW)]).toEqual([null, null])
    const replied = historyOf(reply, NOW, NOW, NOW, NOW, NOW)
    expect([replied.tooManyWritten(write, NOW), replied.tooManyWritten(reply, NOW)]).toEqual([null, null])
  })
})

describe('an action is kept', () => {
  const long = 'x'.repeat(1000)
  const keptOf = (action: Action): unknown => historyOf(action, NOW).record.fires[0]?.action

  test('as a whole up to 1000 characters of JSON', () => {
    const most: Action = { action_type: 'reply', content: 'x'.repeat(1000 - JSON.stringify({ action_type: 'reply', content: '' }).length) }
    expect([keptOf(most), keptOf({ ...most, content: `${most.content}x` })]).toEqual([most, { action_type: 'reply', content: '' }])
  })

  test.each<[Action, object]>([
    [
      { action_type: 'call_tool', tool: 'mail', args: { long }, consume: true },
      { action_type: 'call_tool', tool: 'mail', args: {}, consume: true },
    ],
    [
      { action_type: 'emit_event', event: { type: 'a', long } },
      { action_type: 'emit_event', event: { type: 'a' } },
    ],
    [{ ...write, content: long }, write],
    [
      { action_type: 'run_skill', skill_id: 's', inputs: { long } },
      { action_type: 'run_skill', skill_id: 's', inputs: {} },
    ],
    [
      { action_type: 'invoke_artifact', artifact_id: 'a', method: 'm', args: [long] },
      { action_type: 'invoke_artifact', artifact_id: 'a', method: 'm', args: [] },
    ],
    [
      { action_type: 'set_scratch', key: 'k', value: long },
      { action_type: 'set_scratch', key: 'k', value: null },
    ],
    [
      { action_type: 'sequence', acts: [{ action_type: 'reply', content: long }] },
      { action_type: 'sequence', acts: [] },
    ],
    [
      { action_type: 'sequence', acts: [], branches: [{ when: [], acts: [{ action_type: 'reply', content: long }] }] },
      { action_type: 'sequence', acts: [] },
    ],
    [
      { action_type: 'ignore', reason: long },
      { action_type: 'ignore', reason: long },
    ],
    [
      { action_type: 'cancel_turn', reason: long },
      { action_type: 'cancel_turn', reason: long },
    ],
    [
      { action_type: 'escalate', reason: long },
      { action_type: 'escalate', reason: long },
    ],
  ])('without its content beyond: %j', (action, kept) => {
    expect(keptOf(action)).toEqual(kept)
  })
})

test('the latest action that fits is overruled, each once', () => {
  const history = historyOf(reply, NOW, NOW + 1, NOW + 2)
  const before = history.record
  const fits = (_action: Action, event_id: string) => event_id !== 'e2'
  expect([1, 2, 3].map(() => history.overrule(fits)?.event_id)).toEqual(['e1', 'e0', undefined])
  expect(history.record.fires.map(({ overruled }) => overruled)).toEqual([true, true, undefined])
  expect(history.pace).toEqual({ last_at: NOW + 2, minute: 100, fired: 3 })
  expect(before.fires.map(({ overruled }) => overruled)).toEqual([undefined, undefined, undefined])
  expect(history.overrule(({ action_type }) => action_type === 'ignore')).toBeNull()
})
