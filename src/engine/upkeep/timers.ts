import { type Event, withDefaults } from '../../core/event.ts'
import { limits } from '../../base/limits.ts'
import type { Clean, SecretHider } from '../../base/secrets.ts'
import { nextTick, type Schedule, type Timer } from '../../contract/settings/schedule.ts'
import type { Refused } from '../../base/result.ts'
import { cleanEvent } from '../../events/parse-event.ts'
import { scopeHead } from '../log/spans.ts'
import type { TraceContext } from '../../contract/scope-api.ts'
import type { Alarm } from '../../kernel/alarm.ts'
import type { Database, Unit } from '../../kernel/unit.ts'
import type { Guard } from './guard.ts'

/** Excludes parked timers, whose ticks crashed the scope. Setting one releases it. */
const NOT_PARKED = `name NOT IN (SELECT id FROM guard WHERE kind = 'timer' AND parked_at IS NOT NULL)`

type TimerRow = { name: string; schedule: string; set_at: number; next_at: number; fired: number }

type TimersParts = { database: Database; alarm: Alarm; guard: Guard; scope: string; hider: SecretHider; now: () => number }

/**
 * The scope's timers. A tick's event id contains its due time, so a repeated one is a duplicate
 * (G3).
 */
/** `trace`: of the request. */
type Asker = { by: string; trace?: TraceContext | undefined }

export class Timers {
  readonly #parts: TimersParts

  constructor(parts: TimersParts) {
    this.#parts = parts
    parts.alarm.source(() => this.nextDue())
  }

  /** Idempotent: setting the same schedule keeps its tick times. Releases a parked timer. */
  set(
    unit: Unit,
    name: string,
    schedule: Schedule,
    { by, trace }: Asker,
  ): { ok: true; created: boolean; timer: Timer } | Refused<'never_due' | 'too_many'> {
    this.#parts.guard.release({ kind: 'timer', id: name })
    const existing = this.#row(name)
    const text = JSON.stringify(schedule)
    if (existing?.schedule === text) return { ok: true, created: false, timer: toTimer(existing) }
    const { now } = unit
    const next_at = nextTick(schedule, now, now)
    if (next_at === null) return { ok: false, reason: 'never_due', detail: `timer ${name} would never tick: its time has passed` }
    if (!existing && this.list().length >= limits.timers_per_scope) {
      return { ok: false, reason: 'too_many', detail: `a scope has at most ${limits.timers_per_scope} timers; remove one first` }
    }
    unit.all(
      `INSERT INTO timers (name, schedule, set_at, next_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (name) DO UPDATE SET schedule = ?2, set_at = ?3, next_at = ?4`,
      name,
      text,
      now,
      next_at,
    )
    unit.log({ ...scopeHead(trace), kind: 'timer-set', timer_name: name, schedule, next_at: new Date(next_at).toISOString(), by })
    return {
      ok: true,
      created: !existing,
      timer: { name, schedule, next_at: new Date(next_at).toISOString(), fired: existing?.fired ?? 0 },
    }
  }

  list(): Timer[] {
    return this.#parts.database.all<TimerRow>('SELECT * FROM timers ORDER BY name').map(toTimer)
  }

  get(name: string): Timer | null {
    const row = this.#row(name)
    return row ? toTimer(row) : null
  }

  remove(unit: Unit, name: string, { by, trace }: Asker): boolean {
    this.#parts.guard.release({ kind: 'timer', id: name })
    const removed = unit.all('DELETE FROM timers WHERE name = ? RETURNING name', name).length > 0
    if (removed) unit.log({ ...scopeHead(trace), kind: 'timer-removed', timer_name: name, by })
    return removed
  }

  nextDue(): number | null {
    const first = `SELECT next_at FROM timers WHERE ${NOT_PARKED} ORDER BY next_at LIMIT 1`
    return this.#parts.database.first<{ next_at: number }>(first)?.next_at ?? null
  }

  dueNames(): string[] {
    return this.#due().map(({ name }) => name)
  }

  #due(name?: string): TimerRow[] {
    const due = `SELECT * FROM timers WHERE next_at <= ?1 AND (?2 IS NULL OR name = ?2) AND ${NOT_PARKED} ORDER BY next_at`
    return this.#parts.database.all<TimerRow>(due, this.#parts.now(), name ?? null)
  }

  /**
   * Returns due ticks and advances their timers. Missed ticks become one. If the inbox is `full`,
   * only final ticks are returned.
   */
  due(unit: Unit, full: boolean, name?: string): Clean<Event>[] {
    const { now } = unit
    return this.#due(name).flatMap((row) => {
      const schedule = JSON.parse(row.schedule) as Schedule
      const next = 'at' in schedule ? null : nextTick(schedule, now, row.set_at)
      const skipped = full && next !== null
      if (next === null) unit.all('DELETE FROM timers WHERE name = ?', row.name)
      else unit.all('UPDATE timers SET next_at = ?, fired = fired + ? WHERE name = ?', next, skipped ? 0 : 1, row.name)
      if (skipped) return this.#skip(unit, row)
      const tick = { type: 'timer.tick', id: `timer:${row.name}:${row.next_at}`, timer_name: row.name }
      const event = withDefaults(tick, { now: row.next_at, source: `timer:${row.name}`, scope: this.#parts.scope }) as Event
      return cleanEvent(event, this.#parts.hider)
    })
  }

  /** Corrects ticks that a fast clock left too far in the future; a fixed time stays. */
  correct(unit: Unit): void {
    const { now } = unit
    for (const row of this.#parts.database.all<TimerRow>('SELECT * FROM timers')) {
      const schedule = JSON.parse(row.schedule) as Schedule
      const set_at = Math.min(row.set_at, now)
      const next = 'at' in schedule ? null : nextTick(schedule, now, set_at)
      if (next !== null && next < row.next_at) unit.all('UPDATE timers SET next_at = ?, set_at = ? WHERE name = ?', next, set_at, row.name)
    }
  }

  #skip(unit: Unit, { name, next_at }: TimerRow): [] {
    const entry = { timer_name: name, due_at: new Date(next_at).toISOString(), reason: 'the inbox is full' }
    unit.log({ ...scopeHead(), kind: 'timer-skipped', ...entry })
    return []
  }

  #row(name: string): TimerRow | undefined {
    return this.#parts.database.first<TimerRow>('SELECT * FROM timers WHERE name = ?', name)
  }
}

const toTimer = (row: TimerRow): Timer => ({
  name: row.name,
  schedule: JSON.parse(row.schedule) as Schedule,
  next_at: new Date(row.next_at).toISOString(),
  fired: row.fired,
})
