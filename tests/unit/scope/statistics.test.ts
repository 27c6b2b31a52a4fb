import { defaultSettings } from '../../../src/contract/settings/settings.ts'
import { beforeEach, describe, expect, test } from 'vitest'
import type { BucketRow, StatisticsValues } from '../../../src/features/statistics/contract/statistics.ts'
import type { LogEntry, NewEntry } from '../../../src/contract/log-entry.ts'
import { LogFollower, type UncommittedEntry, type LogListener } from '../../../src/engine/log/log.ts'
import { Statistics } from '../../../src/features/statistics/scope/statistics.ts'
import type { Database } from '../../../src/kernel/unit.ts'
import { part } from '../agents/agent-fixtures.ts'

const START = Date.UTC(2026, 10, 22, 10, 0, 0)
const MINUTE_MS = 60_000

/** The data that outlives the object: its state table, its log and D1. */
let world: { state: Map<string, string>; log: LogEntry[]; d1: Map<string, StatisticsValues>; writes: number; is_away: boolean; now: number }
beforeEach(() => {
  world = { state: new Map(), log: [], d1: new Map(), writes: 0, is_away: false, now: START }
})

/**
 * D1's table of the scopes' rows. The sums over scopes are written once a bucket, however many
 * scopes there are.
 */
const db = part<D1Database>({
  prepare: (sql: string) => part<D1PreparedStatement>({ bind: (rows: unknown) => ({ sql, rows }) as unknown as D1PreparedStatement }),
  batch: async (statements: unknown[]) => {
    if (world.is_away) throw new Error('D1 is away')
    const upserts = (statements as { sql: string; rows: string }[]).filter(({ sql }) => sql.startsWith('INSERT INTO statistics '))
    for (const row of upserts.flatMap(({ rows }) => JSON.parse(rows) as BucketRow[])) {
      world.d1.set(`${row.family} ${row.bucket} ${(row.start - START) / MINUTE_MS}`, row.values)
      world.writes += 1
    }
    return []
  },
})

/** The object, as it wakes. */
function wake() {
  const listeners: LogListener[] = []
  const database = part<Database>({
    read: <Value>(key: string, otherwise: Value) => (world.state.has(key) ? (JSON.parse(world.state.get(key)!) as Value) : otherwise),
    write: (key: string, value: unknown) => void world.state.set(key, JSON.stringify(value)),
  })
  const log = {
    get last() {
      return world.log.length
    },
    entries: (seq: number) => world.log.slice(seq - 1),
    uncommitted: [] as UncommittedEntry[],
    listen: (listener: LogListener) => void listeners.push(listener),
  }
  const statistics = new Statistics({
    database,
    log,
    db,
    scope: 'test',
    now: () => world.now,
    agent: () => ({ name: 'a', trigger: async () => null }),
    settings: () => defaultSettings,
  })
  new LogFollower({ log, scope: 'test' }).add(statistics)
  /** Within a unit: the entries are in the log, and not committed. */
  const begin = (...entries: object[]) => {
    for (const entry of entries as NewEntry[]) {
      const seq = world.log.length + 1
      world.log.push({ seq, at: new Date(world.now).toISOString(), ...entry })
      log.uncommitted.push({ seq, at: world.now, text: '', entry })
    }
  }
  const append = (...entries: object[]) => {
    begin(...entries)
    const committed = log.uncommitted.splice(0)
    for (const listener of listeners) listener(committed)
  }
  return { statistics, append, begin }
}

const head = { trace_id: '1', span_id: 'e', parent_id: null, event_ids: [], duration_ms: null }
const accepted = { ...head, kind: 'event-accepted', event_type: 'test.note', source: 'test', via: 'http' }
const usage = (cost_usd: number) => ({ input_tokens: 10, output_tokens: 5, cost_usd, model_calls: 2 })
const started = (span_id: string) => ({ ...head, span_id, kind: 'turn-started' })
const ended = (span_id: string, { status = 'result', cost_usd = 0, duration_ms = 100 } = {}) => ({
  ...head,
  span_id,
  duration_ms,
  kind: 'turn-ended',
  status,
  usage: usage(cost_usd),
})
const inTurn = (span: string, kind: string, fields: object) => ({ ...head, span_id: `${span}-${kind}`, parent_id: span, kind, ...fields })
const decided = (span: string, verdict: string, skill_id = 'deploy') =>
  inTurn(span, 'skill-decided', { skill_id, dry_run: false, decision: { verdict } })
const run = (span: string, status: string, skill_id = 'deploy') => [
  decided(span, 'allow', skill_id),
  inTurn(span, 'skill-started', { skill_id }),
  inTurn(span, 'skill-applied', { skill_id, status, cost_usd: 0.5, duration_ms: 20 }),
]
const numbers = (key: string, label = '') => world.d1.get(key)?.[label]

describe('statistics of a scope', () => {
  test('go to the bucket of their minute, and to its hour and day', async () => {
    const { statistics, append } = wake()
    world.now = START + MINUTE_MS - 1
    append(accepted, accepted)
    world.now = START + MINUTE_MS
    append(accepted)
    world.now = START + 24 * 60 * MINUTE_MS
    await statistics.send()
    expect(numbers('scope minute 0')).toEqual({ accepted: 2 })
    expect(numbers('scope minute 1')).toEqual({ accepted: 1 })
    expect(numbers('scope hour 0')).toEqual({ accepted: 3 })
    expect(numbers('scope day -600')).toEqual({ accepted: 3 })
    // Lists of scopes show the time of the last event.
    expect(numbers(`scope all ${-START / MINUTE_MS}`)).toEqual({ accepted: 3, max_at: START + MINUTE_MS })
  })

  test('count the answers of a decision model by its name, like the runs of a reflex', async () => {
    const { statistics, append } = wake()
    const made = (left: string | null) => ({
      ...head,
      kind: 'decision-made',
      status: 'ok',
      usage: usage(0),
      middle: { decision_id: 'decision:triage', left },
    })
    append(made(null), made('threshold'), { ...made(null), middle: null })
    world.now = START + MINUTE_MS
    await statistics.send()
    expect(world.d1.get('reflex minute 0')).toEqual({ 'decision:triage': { runs: 2, fires: 1 } })
  })

  test('are replicated once at first, and then when the bucket ends', async () => {
    const { statistics, append } = wake()
    append(accepted)
    expect(statistics.due()).toBeLessThanOrEqual(world.now)
    await statistics.send()
    expect(statistics.due()).toBeNull()
    world.now = START + 30_000
    append(accepted)
    await statistics.send()
    expect(numbers('scope minute 0')).toEqual({ accepted: 1 })
    expect(statistics.due()).toBe(START + MINUTE_MS)
    world.now = START + MINUTE_MS
    await statistics.send()
    expect(numbers('scope minute 0')).toEqual({ accepted: 2 })
    expect(world.writes).toBe(8)
  })

  test('of an hour are replicated at times that double, so that a new one is not old for long', async () => {
    let object = wake()
    const sent: number[] = []
    for (let minute = 0; minute < 60; minute++) {
      world.now = START + minute * MINUTE_MS
      if (minute === 5) object = wake()
      object.append(accepted)
      await object.statistics.send()
      if (numbers('scope hour 0')?.['accepted'] === minute + 1) sent.push(minute)
    }
    expect(sent).toEqual([0, 1, 3, 7, 15, 25, 35, 45, 55])
  })

  test('lose and double nothing if the object dies before D1 is written, or after it', async () => {
    wake().append(accepted, accepted)
    const second = wake()
    await second.statistics.send()
    expect(numbers('scope minute 0')).toEqual({ accepted: 2 })
    second.append(accepted)
    world.now = START + MINUTE_MS
    const noted = new Map(world.state)
    await second.statistics.send()
    world.state = noted
    const third = wake()
    expect(third.statistics.due()).not.toBeNull()
    await third.statistics.send()
    expect(numbers('scope minute 0')).toEqual({ accepted: 3 })
    expect(numbers('scope hour 0')).toEqual({ accepted: 3 })
    third.append(accepted)
    await third.statistics.send()
    expect(numbers('scope hour 0')).toEqual({ accepted: 3 })
    world.now = START + 60 * MINUTE_MS
    await wake().statistics.send()
    expect(numbers('scope hour 0')).toEqual({ accepted: 4 })
  })

  test('are kept while D1 is unavailable, and replicated after that', async () => {
    const { statistics, append } = wake()
    append(accepted)
    world.is_away = true
    await expect(statistics.send()).rejects.toThrow('away')
    append(accepted)
    world.is_away = false
    await statistics.send()
    expect(numbers('scope minute 0')).toEqual({ accepted: 2 })
  })

  test('that are counted while D1 is written are replicated later', async () => {
    const { statistics, append } = wake()
    append(accepted)
    const sending = statistics.send()
    append(accepted)
    await sending
    expect(statistics.due()).toBe(START + MINUTE_MS)
  })

  test('of a clock that is set back stay in the newest bucket', async () => {
    const { statistics, append } = wake()
    world.now = START + MINUTE_MS
    append(accepted)
    world.now = START
    append(accepted)
    world.now = START + 2 * MINUTE_MS
    await statistics.send()
    expect(numbers('scope minute 0')).toBeUndefined()
    expect(numbers('scope minute 1')).toEqual({ accepted: 2 })
  })

  test('have a bounded number of labels', () => {
    const { statistics, append } = wake()
    for (let index = 0; index < 60; index += 1) append({ ...head, kind: 'reflex-passed', reflex_id: `r${index}`, reason: 'null' })
    const labels = statistics.values('reflex', 'minute')
    expect(Object.keys(labels)).toHaveLength(51)
    expect(labels['(other)']).toEqual({ runs: 10 })
  })
})

describe('service levels', () => {
  test('have the time of the gate without dry runs, and the decisions that a pinned replay decided otherwise', () => {
    const { statistics, append } = wake()
    const gate = (duration_ms: number, dry_run = false) => ({ skill_id: 'deploy', duration_ms, dry_run, decision: { verdict: 'allow' } })
    append(inTurn('t', 'skill-decided', gate(0.9)), inTurn('t', 'skill-decided', gate(0.9)), inTurn('t', 'skill-decided', gate(5, true)))
    const replay = { kind: 'replay-done', of: { trace_id: 'a' }, compared: 7, changed: 1, unknown: 0, by: 'ann' }
    append({ ...head, ...replay, mode: 'pinned' }, { ...head, ...replay, mode: 'what_if' })
    const counts = statistics.values('scope', 'all')['']
    expect(counts).toMatchObject({ replayed: 7, replayed_otherwise: 1 })
    expect(Object.entries(counts ?? {}).filter(([name]) => name.startsWith('gate_us'))).toEqual([[expect.any(String), 2]])
  })
})

describe('a turn', () => {
  test('is counted with the skills that ran in it', () => {
    const { statistics, append } = wake()
    append(started('a'), ...run('a', 'ok'), ended('a', { cost_usd: 1 }), started('b'), ended('b', { cost_usd: 3 }))
    expect(statistics.values('scope', 'minute')['']).toMatchObject({ turns: 2, turn_cost_usd: 4 })
    expect(statistics.values('skill', 'minute')['deploy']).toMatchObject({ calls: 1, ok: 1, cost_usd: 0.5, turns: 1, turn_cost_usd: 1 })
  })

  test('is an average that the unit which ends it sees, and is counted once after the commit', () => {
    const { statistics, append, begin } = wake()
    append(started('a'), ended('a', { cost_usd: 1 }))
    begin(started('b'), ended('b', { cost_usd: 3 }))
    const both = { turns: 2, model_calls: 4, tokens: 30, cost_usd: 4 }
    expect(statistics.turns).toEqual(both)
    expect(statistics.values('scope', 'all')['']).toMatchObject({ turns: 1 })
    append()
    expect(statistics.turns).toEqual(both)
    expect(statistics.values('scope', 'all')['']).toMatchObject({ turns: 2 })
  })

  test('that an eviction interrupts is counted the same', () => {
    const first = wake()
    first.append(started('a'), decided('a', 'allow'), inTurn('a', 'skill-started', { skill_id: 'deploy' }))
    world.state.set(
      ...(first.statistics.snapshot().map((value, index) => (index === 0 ? value : JSON.stringify(value))) as [string, string]),
    )
    const second = wake()
    second.append(ended('a', { cost_usd: 1 }))
    expect(second.statistics.values('skill', 'minute')['deploy']).toMatchObject({ calls: 1, turns: 1, turn_cost_usd: 1 })
  })

  test('counts the first card that ran successfully, of the turns with a bulletin', () => {
    const { statistics, append } = wake()
    const cards = inTurn('a', 'bulletin-built', { cards: [{ skill_id: 'deploy' }, { skill_id: 'rollback' }], tokens: 60 })
    append(started('a'), cards, ...run('a', 'ok'), ended('a'))
    append(started('a'), cards, ...run('a', 'ok', 'rollback'), ended('a'))
    append(started('a'), cards, ended('a'))
    append(started('a'), ...run('a', 'ok'), ended('a'))
    expect(statistics.values('scope', 'minute')['']).toMatchObject({ ranked: 2, ranked_first: 1, bulletins: 3, bulletin_tokens: 180 })
  })

  test('that went on after a refused or failed proposal is a fallback', () => {
    const { statistics, append } = wake()
    append(started('a'), decided('a', 'deny'), ...run('a', 'failed'), ended('a'))
    append(started('a'), decided('a', 'deny'), ended('a', { status: 'none' }))
    append(started('a'), decided('a', 'needs_approval'), ended('a'))
    append(started('a'), decided('a', 'clarify'), inTurn('a', 'skill-slots-parsed', { skill_id: 'deploy' }), ...run('a', 'ok'), ended('a'))
    expect(statistics.values('skill', 'minute')['deploy']).toMatchObject({ proposals: 5, fallbacks: 2, policy_denials: 2, clarifies: 0 })
  })
})

describe('a skill', () => {
  test('has the longest series of its failures, which a success ends', () => {
    const { statistics, append } = wake()
    append(...['failed', 'failed', 'ok', 'failed'].flatMap((status) => run('x', status)))
    expect(statistics.values('skill', 'minute')['deploy']).toMatchObject({ calls: 4, ok: 1, failed: 3, max_streak: 2 })
  })
})

describe('a reflex', () => {
  test('saves the average turn of the scope with each event that it decides', () => {
    const { statistics, append } = wake()
    append(started('a'), ended('a', { cost_usd: 1 }), started('b'), ended('b', { cost_usd: 3 }))
    append({ ...head, kind: 'reflex-fired', reflex_id: 'greet', state: 'active', action: { action_type: 'reply', content: 'hi' } })
    append({ ...head, kind: 'event-ended', status: 'completed', outcome: { by: 'reflex', reflex_id: 'greet', version: 1, log_seq: 1 } })
    const saved = { saved_model_calls: 2, saved_tokens: 15, saved_cost_usd: 2 }
    expect(statistics.values('reflex', 'minute')['greet']).toEqual({ runs: 1, fires: 1, decided: 1, ...saved })
  })

  test('counts what it left alone, and the audits of it that chance drew', () => {
    const { statistics, append } = wake()
    const own = { action_type: 'ignore', reason: 'no need' }
    const audit = { ...head, kind: 'reflex-audited', reflex_id: 'quiet', judged_by: 'audit', own }
    append({ ...head, kind: 'reflex-fired', reflex_id: 'quiet', state: 'active', action: own })
    append({ ...audit, occasion: 'drawn', agreed: true }, { ...audit, occasion: 'first', agreed: false })
    append({ ...audit, occasion: 'new', agreed: false }, { ...audit, occasion: 'drawn', agreed: null })
    append({ ...audit, occasion: 'drawn', agreed: false, own: { action_type: 'reply', content: 'hi' } })
    const counted = { left_alone: 1, left_alone_audits: 2, left_alone_missed: 1, audits: 5 }
    expect(statistics.values('reflex', 'minute')['quiet']).toMatchObject(counted)
    expect(statistics.values('scope', 'minute')['']).toMatchObject(counted)
  })
})
