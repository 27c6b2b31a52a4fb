import { messageOf } from '../base/error-text.ts'
import { warn } from '../base/warn.ts'
import type { ExpiredEvents } from './inbox/expired-events.ts'
import type { ExpiredEntries } from './log/expired-entries.ts'
import type { Archiving } from './log/past.ts'
import { together } from './upkeep/guard.ts'
import type { SkillRuns } from './skills/runs.ts'
import type { Unit } from '../kernel/unit.ts'
import type { Lanes } from './effects/wiring.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const BATCH = 1000

type RetentionParts = Lanes & {
  runs: SkillRuns
  old_events: ExpiredEvents
  old_entries: ExpiredEntries
}

/**
 * Deletes old data in small steps, at most once an hour. An event's id recognizes duplicates (G3)
 * until then. With an archive, events and the log are deleted once the archive has them, by whole
 * days (UTC), so that a day of a scope gives few files.
 */
export class Retention {
  readonly #parts: RetentionParts
  #earliest = 0
  #archive: Archiving | null = null
  #archiving: Promise<void> | null = null
  /** Expired events or entries may be left for the archive. */
  #to_archive = false

  constructor(parts: RetentionParts) {
    this.#parts = parts
    parts.alarm.source(() => this.nextDue())
  }

  /** Has an archive take what is deleted. */
  archiveBy(archive: Archiving): void {
    this.#archive = archive
  }

  /** Time at which the oldest entry expires, so that a sleeping scope wakes once, not hourly. */
  nextDue(): number | null {
    const { log, log_parts, guard, done_keys } = this.#parts
    if (this.#archiving || guard.parkedAt(together('retention')) !== null) return null
    // Parts outlive the entries that name them, also in a scope that is quiet from then on.
    const oldest = log.oldest() ?? (log.last > 0 ? log_parts.keptUntil() : null)
    const logged = oldest !== null && this.#archive ? dayAfter(oldest) : oldest
    const due = [dueOf(logged, this.#retained()), dueOf(done_keys.oldest(), this.#promised())].filter((at) => at !== null)
    return due.length === 0 ? null : Math.max(this.#earliest, Math.min(...due))
  }

  /** Deletes one batch. If expired data is left, the next batch follows after a second. */
  sweep(unit: Unit): void {
    const { memory, done_keys, action_keys, replica, runs, old_events, old_entries } = this.#parts
    const archive = this.#archive
    const due = this.nextDue()
    if (due === null || unit.now < due) return
    const before = unit.now - this.#retained()
    memory.expire(unit, before)
    this.#parts.guard.forget(before)
    this.#parts.counters.snapshot(unit, this.#parts.log)
    for (const feature of this.#parts.features) feature.swept?.(unit)
    const kept = replica.unreplicated
    const gone = [
      // Events that D1 does not have yet are kept, and so is the log that names them.
      kept === null || archive ? 0 : old_events.forget(unit, { before, kept, floor: memory.floor }, BATCH),
      archive ? 0 : old_entries.forget(unit, { before, last: replica.mark }, BATCH),
      archive ? 0 : this.#parts.log_parts.forget(unit, before, BATCH),
      this.#parts.effects.journal.forget(unit, before, BATCH),
      action_keys.forget(unit, before, BATCH),
      runs.forget(unit, before, BATCH),
      done_keys.forget(unit.now - this.#promised(), BATCH),
    ]
    this.#to_archive = archive !== null
    this.#earliest = unit.now + (gone.some((count) => count === BATCH) ? 1000 : HOUR_MS)
  }

  /** Archives what has expired, after a sweep. A failure is retried by a later sweep. */
  archive(): Promise<void> {
    if (!this.#to_archive) return this.#archiving ?? Promise.resolve()
    this.#to_archive = false
    return (this.#archiving ??= this.#toArchive().finally(() => {
      this.#archiving = null
      this.#parts.alarm.rearm()
    }))
  }

  async #toArchive(): Promise<void> {
    const { unit, now, memory, replica } = this.#parts
    const archive = this.#archive
    const expired = () => {
      const before = dayOf(now() - this.#retained())
      return { before, kept: replica.unreplicated, floor: memory.floor, mark: replica.mark }
    }
    try {
      if (await archive?.run(unit, expired)) this.#earliest = now() + 1000
    } catch (error) {
      archive?.failed(messageOf(error))
      warn({ message: 'failed to archive; nothing was deleted; will retry', scope: this.#parts.scope, error })
      this.#earliest = now() + MINUTE_MS
    }
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
const dayOf = (ms: number): number => Math.floor(ms / DAY_MS) * DAY_MS
const dayAfter = (ms: number): number => dayOf(ms) + DAY_MS
