import type { Settings } from '../contract/settings.ts'
import type { DoneKeys } from './effects/done-keys.ts'
import { together, type Guard } from './guard.ts'
import type { Inbox } from './inbox/inbox.ts'
import type { Log } from './log.ts'
import type { SkillRuns } from './skills/runs.ts'
import type { Actions } from './reflexes/actions.ts'
import type { WorkingMemory } from './context/working-memory.ts'
import type { Unit } from './unit.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const BATCH = 1000

type Parts = {
  guard: Guard
  inbox: Inbox
  memory: WorkingMemory
  log: Log
  doneKeys: DoneKeys
  actions: Actions
  skillRuns: SkillRuns
  settings: () => Settings
}

/** Forgets, once an hour at most and in small steps, what is older than the scope retains. An id is a duplicate for just as long (G3). */
export class Retention {
  readonly #parts: Parts
  #earliest = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** When the oldest entry is old enough: a scope that sleeps is woken once for that, not every hour. */
  nextDue(): number | null {
    const { log, guard, doneKeys } = this.#parts
    if (guard.parkedAt(together('retention')) !== null) return null
    const due = [dueOf(log.oldest(), this.#retained()), dueOf(doneKeys.oldest(), this.#promised())].filter((at) => at !== null)
    return due.length === 0 ? null : Math.max(this.#earliest, Math.min(...due))
  }

  /** If more is left than one step takes, the next step comes a second later. */
  sweep(unit: Unit): void {
    const { inbox, memory, log, doneKeys, actions, skillRuns } = this.#parts
    const due = this.nextDue()
    if (due === null || unit.now < due) return
    const before = unit.now - this.#retained()
    memory.expire(unit, before)
    this.#parts.guard.forget(before)
    const gone = [
      inbox.forget(unit, before, BATCH),
      log.forget(unit, before, BATCH),
      doneKeys.forgetEffects(before, BATCH),
      actions.forget(unit, before, BATCH),
      skillRuns.forget(before, BATCH),
      doneKeys.forget(unit.now - this.#promised(), BATCH),
    ]
    this.#earliest = unit.now + (gone.some((count) => count === BATCH) ? 1000 : HOUR_MS)
  }

  #retained(): number {
    return this.#parts.settings().retention_days * DAY_MS
  }

  /** How long a key is known. The journal, which has the key and all else, is kept for the scope's retention whatever is promised. */
  #promised(): number {
    return Math.max(this.#retained(), this.#parts.settings().idempotence_days * DAY_MS)
  }
}

const dueOf = (oldest: number | null, kept_ms: number): number | null => (oldest === null ? null : oldest + kept_ms)
