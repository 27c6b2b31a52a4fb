import { defaultSettings } from '../../src/contract/settings/settings.ts'
import { DurableObject } from 'cloudflare:workers'
import type { EntryHead } from '../../src/contract/log-entry.ts'
import { DoneKeys, effectId, EffectJournal } from '../../src/engine/effects/effect-journal.ts'
import { scopeHead } from '../../src/engine/log/spans.ts'
import { childHead } from '../../src/traces/ids.ts'
import { Log } from '../../src/engine/log/log.ts'
import { Statistics } from '../../src/features/statistics/scope/statistics.ts'
import { ScopeCounters, unitOfWork, type Unit } from '../../src/kernel/unit.ts'
import { openDatabase } from '../../src/engine/storage/scope-tables.ts'
import { timed } from './timed.ts'

const BLOCKS = 20
const CALLS = 100
const input = { address: '203.0.113.7', reason: 'six failed logins within a minute', ticket: { queue: 'security', priority: 2 } }
const output = { id: 'ticket-17', url: 'https://tickets.example/17', created: true }

/** Writes what the effect lane of a scope writes for a call, with and without the log. */
export class Lane extends DurableObject<{ DB: D1Database }> {
  /** ms a call that the entries of its span add: formed, masked, counted, packed and written. */
  measure(): number[] {
    const storage = this.ctx.storage
    const database = openDatabase(storage, () => ({}))
    const now = Date.now
    const log = new Log(database, now)
    const counters = new ScopeCounters(database)
    const statistics = new Statistics({
      database,
      log,
      db: this.env.DB,
      scope: 'bench',
      now,
      agent: () => ({ name: 'a', trigger: async () => null }),
      settings: () => defaultSettings,
    })
    const nothing = () => {}
    const idle = { unfinished: false, ended: nothing, flush: nothing, failed: nothing, by: nothing, arm: nothing }
    const parts = { database, log, counters, deferred: idle, guard: idle, alarm: idle, outbox: idle, reset: nothing, now }
    const unit = unitOfWork({ ...parts, buffered: [statistics] })
    const journal = new EffectJournal({ database, done_keys: new DoneKeys(database) })
    const turn = scopeHead()
    let owner = 0
    const call = (logged: Logged | null) => {
      owner += 1
      const place = { owner: `turn-${owner}`, phase: 'call' as const, place: 0 }
      const request = { tool: 'http.ticket', arguments_hash: 'a'.repeat(64), key: `key-${owner}` }
      const head = logged && childHead(turn)
      unit((begin) => {
        const log_seq = logged && head ? logged.begin(begin, head, effectId(place)) : 0
        journal.begin(begin, { ...place, ...request, log_seq, started_at: begin.now })
      })
      unit((end) => {
        journal.end(end, place, { status: 'ok', output, error: null })
        end.count({ effects: 1 })
        if (logged && head) logged.end(end, head, effectId(place))
      })
    }
    const block = (logged: Logged | null) => timed(() => Array.from({ length: CALLS }, () => call(logged))).ms / CALLS
    const entries = entriesOf(log)
    // In turns, since the table grows.
    return Array.from({ length: BLOCKS }, () => block(entries) - block(null))
  }
}

type Logged = ReturnType<typeof entriesOf>
const entriesOf = (log: Log) => ({
  begin: (unit: Unit, head: EntryHead, effect_id: string) =>
    unit.log({
      ...head,
      kind: 'effect-started',
      effect_id,
      tool: 'http.ticket',
      input: log.clean(input, head.trace_id),
      idempotence_key: null,
      cause: { by: 'turn' },
    }),
  end: (unit: Unit, head: EntryHead, effect_id: string) =>
    unit.log({
      ...head,
      duration_ms: 10,
      kind: 'effect-ended',
      effect_id,
      tool: 'http.ticket',
      status: 'ok',
      output: log.clean(output, head.trace_id),
      error: null,
      idempotence_key: null,
    }),
})
