import { together } from './guard.ts'
import type { SkillRuns } from '../skills/runs.ts'
import type { Unit } from '../storage/unit.ts'
import type { Lanes } from '../effects/wiring.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const BATCH = 1000

type Parts = Pick<
  Lanes,
  'guard' | 'inbox' | 'memory' | 'log' | 'log_parts' | 'counters' | 'effects' | 'done_keys' | 'action_keys' | 'replica' | 'settings'
> & {
  runs: SkillRuns
}

/**
 * Deletes old data in small steps, at most once an hour. An event's id recognizes duplicates (G3)
 * until then.
 */
export class Retention {
  readonly #parts: Parts
  #earliest = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Time at which the oldest entry expires, so that a sleeping scope wakes once, not hourly. */
  nextDue(): number | null {
    const { log, guard, done_keys } = this.#parts
    if (guard.parkedAt(together('retention')) !== null) return null
    const due = [dueOf(log.oldest(), this.#retained()), dueOf(done_keys.oldest(), this.#promised())].filter((at) => at !== null)
    return due.length === 0 ? null : Math.max(this.#earliest, Math.min(...due))
  }

  /** Deletes one batch. If expired data is left, the next batch follows after a second. */
  sweep(unit: Unit): void {
    const { inbox, memory, log, log_parts, effects, done_keys, action_keys, replica, runs } = this.#parts
    const due = this.nextDue()
    if (due === null || unit.now < due) return
    const before = unit.now - this.#retained()
    memory.expire(unit, before)
    this.#parts.guard.forget(before)
    this.#parts.counters.snapshot(unit, log)
    const kept = replica.unreplicated
    const gone = [
      // Events that D1 does not have yet are kept, and so is the log that names them.
      kept === null ? 0 : inbox.forget(unit, before, BATCH, { kept, floor: memory.floor }),
      log.forget(unit, before, BATCH, replica.mark),
      log_parts.forget(unit, before, BATCH),
      effects.journal.forget(unit, before, BATCH),
      action_keys.forget(unit, before, BATCH),
      runs.forget(unit, before, BATCH),
      done_keys.forget(unit.now - this.#promised(), BATCH),
    ]
    this.#earliest = unit.now + (gone.some((count) => count === BATCH) ? 1000 : HOUR_MS)
  }

  #retained(): number {
    return this.#parts.settings().retention_days * DAY_MS
  }

  /** Keys are kept at least as long as journal rows. */
  #promised(): number {
    return Math.max(this.#retained(), this.#parts.settings().idempotence_days * DAY_MS)
  }
}

const dueOf = (oldest: number | null, kept_ms: number): number | null => (oldest === null ? null : oldest + kept_ms)
