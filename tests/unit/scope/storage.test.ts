import { describe, expect, test, vi } from 'vitest'
import { hidesNothing } from '../../../src/base/secrets.ts'
import { defaultSettings } from '../../../src/contract/settings/settings.ts'
import { cleanEvent } from '../../../src/events/parse-event.ts'
import { DoneKeys, EffectJournal } from '../../../src/engine/effects/effect-journal.ts'
import { Inbox } from '../../../src/engine/inbox/inbox.ts'
import { type Database, ScopeCounters, unitOfWork, type UnitOfWork, ZERO } from '../../../src/kernel/unit.ts'
import { Budget } from '../../../src/engine/turns/model-access.ts'
import { type ClaimParts, TurnClaims } from '../../../src/engine/turns/ledger.ts'
import { openScopeStorage } from '../../support/scope-storage.ts'
import { event, part } from '../agents/agent-fixtures.ts'

type UnitParts = Parameters<typeof unitOfWork>[0]

const HOUR = 3_600_000

/** Units of work that write to this database and to nothing else. */
function unitsOf(database: Database, now: () => number = () => 1000) {
  const reset = vi.fn<(error: unknown) => void>()
  const unit = unitOfWork({
    database,
    log: part<UnitParts['log']>({ append: () => 1, announce: () => {}, begin: () => {} }),
    counters: part<UnitParts['counters']>({ write: () => {} }),
    buffered: [],
    deferred: { unfinished: false, flush: () => {}, ended: () => {} },
    guard: { failed: () => {} },
    alarm: { by: () => {} },
    outbox: { arm: () => {} },
    reset,
    now,
  })
  return { unit, reset }
}

describe('a unit of work', () => {
  test('writes nothing after a nested one failed, although its error was caught', () => {
    const { database, rowsOf } = openScopeStorage()
    const { unit, reset } = unitsOf(database)
    const work = () =>
      unit((outer) => {
        outer.write('before', 1)
        try {
          unit(() => {
            throw new Error('the nested one failed')
          })
        } catch {
          outer.write('after', 2)
        }
      })
    expect(work).toThrow('the nested one failed')
    expect(reset).toHaveBeenCalledOnce()
    expect(rowsOf('SELECT key FROM state')).toEqual([])
  })
})

describe('the counters of a scope', () => {
  test('sum what they know, beside what another version of the Worker wrote in the snapshot and in the log', () => {
    const { database } = openScopeStorage()
    // A version that did not know a name added what came under it to nothing.
    database.write('counters', { seq: 1, counts: { accepted: 3, told: null, noted: 'undefined[object Object]' } })
    const insert = 'INSERT INTO log (seq, at, counts, entries) VALUES (?, 0, ?, ?)'
    const counts = { accepted: 2, completed: 1, of_a_later_version: { an: 'object' } }
    for (const seq of [1, 2]) database.all(insert, seq, JSON.stringify(counts), '')
    expect(new ScopeCounters(database).counts).toEqual({ ...ZERO, accepted: 5, completed: 1 })
  })
})

describe('the inbox', () => {
  const open = () => {
    const { database } = openScopeStorage()
    return { database, inbox: new Inbox(database), ...unitsOf(database) }
  }
  const accept = (inbox: Inbox, unit: UnitOfWork, ...ids: string[]) => {
    const events = ids.map((id) => cleanEvent(event({ id, type: 'test.note' }), hidesNothing))
    const judged = inbox
      .fresh(events)
      .map((stored) => ({ stored, status: 'pending' as const, in_context: true, outcome: null, chain_seq: null }))
    unit((writing) => inbox.insert(writing, judged as unknown as Parameters<Inbox['insert']>[1]))
    return judged.map(({ stored }) => stored.seq)
  }

  test('takes the first of two events of a batch that have the same id', () => {
    const { inbox } = open()
    const sent = ['one', 'two'].map((source) => cleanEvent(event({ id: 'a', type: 'test.note', source }), hidesNothing))
    expect(inbox.fresh(sent).map((stored) => [stored.seq, stored.event.source])).toEqual([[1, 'one']])
  })

  test('counts an event as ended once, however often it is asked to end it', () => {
    const { inbox, unit } = open()
    const [first = 0, second = 0] = accept(inbox, unit, 'a', 'b')
    expect(inbox.open).toBe(2)
    const end = (...seqs: number[]) =>
      unit((writing) => inbox.end(writing, seqs, { status: 'cancelled', outcome: { by: 'cancel', reason: 'no longer needed' } }))
    expect(end(first)).toHaveLength(1)
    expect(end(first, second)).toHaveLength(1)
    expect(inbox.open).toBe(0)
  })

  test('gives no event the number of one that retention deleted, also after a restart', () => {
    const { database, inbox, unit } = open()
    expect(accept(inbox, unit, 'a', 'b')).toEqual([1, 2])
    // As retention does.
    unit((writing) => {
      writing.all('DELETE FROM events')
      writing.write('inbox_floor', inbox.last)
    })
    const restarted = new Inbox(database)
    expect(restarted.last).toBe(2)
    expect(accept(restarted, unit, 'c')).toEqual([3])
  })
})

describe('the journal of effects', () => {
  const open = () => {
    const { database, rowsOf } = openScopeStorage()
    const journal = new EffectJournal({ database, done_keys: new DoneKeys(database) })
    const begin = (owner: string, key: string | null, started_at = 1) =>
      unit((writing) =>
        journal.begin(writing, { owner, phase: 'call', place: 0, tool: 'pay', arguments_hash: 'h', key, log_seq: 1, started_at }),
      )
    const { unit } = unitsOf(database)
    return { journal, unit, begin, rowsOf }
  }

  test('has an effect whose outcome is unknown as repeated once its key runs again', () => {
    const { begin, rowsOf, unit } = open()
    begin('turn-1', 'key-1')
    unit((writing) => writing.all(`UPDATE effects SET status = 'unknown'`))
    begin('turn-2', 'key-1')
    expect(rowsOf('SELECT owner, status, idempotence_key FROM effects ORDER BY owner')).toMatchObject([
      { owner: 'turn-1', status: 'repeated', idempotence_key: null },
      { owner: 'turn-2', status: 'started', idempotence_key: 'key-1' },
    ])
  })

  test('keeps an effect that still runs, however long ago it began', () => {
    const { journal, unit, begin, rowsOf } = open()
    begin('turn-1', null)
    begin('turn-2', null)
    unit((writing) => writing.all(`UPDATE effects SET status = 'failed' WHERE owner = 'turn-2'`))
    expect(unit((writing) => journal.forget(writing, 1000, 10))).toBe(1)
    expect(rowsOf('SELECT owner FROM effects')).toMatchObject([{ owner: 'turn-1' }])
  })
})

describe('the budget', () => {
  test('begins each period without the tokens of the last one', () => {
    let now = 0
    const { database } = openScopeStorage()
    const { unit } = unitsOf(database, () => now)
    const settings = { ...defaultSettings, token_budget: { tokens: 100, per: 'hour' as const } }
    const budget = new Budget(database, () => settings, {
      scope: 'one',
      declared: undefined,
      now: () => now,
      shared: () => [],
      problem: () => null,
      lease: () => Promise.reject(new Error('not shared')),
    })
    unit((writing) => budget.spend(writing, 60))
    unit((writing) => budget.spend(writing, 30))
    expect(budget.remaining()).toBe(10)
    now = HOUR
    expect(budget.remaining()).toBe(100)
    unit((writing) => budget.spend(writing, 5))
    expect(budget.remaining()).toBe(95)
    // The clock was ahead.
    now = HOUR - 1
    expect(budget.remaining()).toBe(10)
    unit((writing) => budget.spend(writing, 1))
    now = HOUR
    expect(budget.remaining()).toBe(95)
  })
})

describe('a claim after a crash', () => {
  test('is on disk before the guard forgets the event', async () => {
    const { database, synced } = openScopeStorage()
    const { unit } = unitsOf(database)
    const done = vi.fn<() => void>()
    const claims = new TurnClaims(
      part<ClaimParts>({
        database,
        unit,
        guard: part({ begin: async () => true, done }),
        rows: part({ nextForTurn: () => 7, dueForTurn: () => [] }),
        settings: () => defaultSettings,
        memory: part({}),
        agent: part({}),
        log: part({}),
        effects: part({ journal: part({ unsafe: () => [] }), unsafe: () => [] }),
        now: () => 1000,
      }),
    )
    const claimed = claims.claimOne()
    await new Promise((resolve) => setImmediate(resolve))
    expect(done).not.toHaveBeenCalled()
    synced()
    expect(await claimed).toEqual({ turn: null, more: true })
    expect(done).toHaveBeenCalledOnce()
  })
})
