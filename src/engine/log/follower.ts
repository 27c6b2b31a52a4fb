import { logError } from '../../base/warn.ts'
import type { NewEntry } from '../../contract/log-entry.ts'
import type { StateWrite } from '../../kernel/unit.ts'
import type { Log } from './log.ts'

/** A committed entry, its place in the log, and the time of its unit in ms. */
export type Committed = { seq: number; at: number; entry: NewEntry }

export type Follows = {
  name: string
  /** The last entry that it has on disk: the log after it is followed again on waking. */
  from: number
  /** Gets entries in order. What it writes is one transaction with its own `from`. */
  follow: (entries: readonly Committed[]) => void
  /** The next unit stores these with its own changes: they include what was followed before it. */
  changes?: () => StateWrite[]
}

type LogFollowerParts = { log: Pick<Log, 'last' | 'entries' | 'listen'>; scope: string }

/**
 * Passes committed entries to those that follow the log: from memory while the object lives, from
 * the stored log after a death. A unit is never undone because of them: a follower that dies is
 * behind, and one that fails leaves these entries out.
 */
export class LogFollower {
  readonly #parts: LogFollowerParts
  readonly #all: Follows[] = []

  constructor(parts: LogFollowerParts) {
    this.#parts = parts
    parts.log.listen((entries) => {
      for (const one of this.#all) this.#pass(one, entries)
    })
  }

  /** Adds a follower, which first gets what it has missed. */
  add(one: Follows): void {
    const { log } = this.#parts
    const missed = one.from < log.last ? log.entries(one.from + 1, Number.POSITIVE_INFINITY) : []
    this.#pass(
      one,
      missed.map((entry) => ({ seq: entry.seq, at: Date.parse(entry.at), entry })),
    )
    this.#all.push(one)
  }

  changes(): StateWrite[] {
    return this.#all.flatMap((one) => one.changes?.() ?? [])
  }

  #pass(one: Follows, entries: readonly Committed[]): void {
    if (entries.length === 0) return
    try {
      one.follow(entries)
    } catch (error) {
      const first = entries.at(0)?.seq
      const last = entries.at(-1)?.seq
      logError({ message: 'log entries were not followed', by: one.name, scope: this.#parts.scope, first, last, error })
    }
  }
}
