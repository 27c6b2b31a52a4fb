import { nextTick, type Schedule } from '../../contract/schedule.ts'
import type { Database } from '../storage/database.ts'
import { UNTIL_SETTLED } from '../inbox/turn-rows.ts'
import type { Log } from '../log/log.ts'
import type { ModelOutage } from '../turns/model-outage.ts'
import { scopeHead } from '../log/spans.ts'
import type { Unit } from '../storage/unit.ts'

/** Tolerated difference between the clocks of two machines; smaller errors pass as quickly. */
const TOLERATED_MS = 60_000

type Parts = { database: Database; log: Log; outage: ModelOutage }

/**
 * Corrects times that a fast clock left too far in the future: retries, leases and timers. The
 * newest log entry shows by how much it was ahead. Runs on waking and at each alarm.
 */
export function correctClock(unit: Unit, { database, log, outage }: Parts): void {
  const newest = log.newest()
  const at = unit.now
  if (newest === null || newest <= at + TOLERATED_MS) return
  const ahead_ms = newest - at
  const earlier = (column: string) => `${column} = max(?1, ${column} - ?2)`
  unit.all(`UPDATE events SET ${earlier('due_at')} WHERE status = 'pending' AND due_at > ?1`, at, ahead_ms)
  unit.all(
    `UPDATE events SET ${earlier('lease_until')} WHERE status = 'processing' AND lease_until > ?1 AND lease_until < ?3`,
    at,
    ahead_ms,
    UNTIL_SETTLED,
  )
  unit.all(`UPDATE events SET parked_at = ?1 WHERE status IN ('pending', 'processing') AND parked_at > ?1`, at)
  outage.moved(unit, ahead_ms)
  correctTimers(unit, database)
  // Its time becomes the newest, so nothing is corrected twice.
  unit.log({ ...scopeHead(), kind: 'clock-corrected', ahead_ms })
}

/** A timer with a fixed time keeps it. */
function correctTimers(unit: Unit, database: Database): void {
  const { now } = unit
  for (const row of database.all<{ name: string; schedule: string; set_at: number; next_at: number }>('SELECT * FROM timers')) {
    const schedule = JSON.parse(row.schedule) as Schedule
    const set_at = Math.min(row.set_at, now)
    const next = 'at' in schedule ? null : nextTick(schedule, now, set_at)
    if (next !== null && next < row.next_at) unit.all('UPDATE timers SET next_at = ?, set_at = ? WHERE name = ?', next, set_at, row.name)
  }
}
