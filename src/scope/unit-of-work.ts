import type { Database, StateChange } from './database.ts'
import type { Log } from './log.ts'

/** Runs synchronous work that is kept as a whole or not at all. */
export type UnitOfWork = <Result>(work: () => Result) => Result

/**
 * After work that threw half way, memory and disk may differ: `reset` drops the object, and the next request builds it from what is on disk. Expected
 * failures never get here; they are data.
 */
export function unitOfWork({ database, log, counted, changed, reset }: Parts): UnitOfWork {
  return (work) => {
    try {
      const result = database.transaction(() => {
        log.gather()
        const made = work()
        database.writeAll(counted())
        log.written()
        return made
      })
      if (database.laid) changed()
      return result
    } catch (error) {
      reset(error)
      throw error
    }
  }
}

/** `counted`: what was counted in memory and is to be kept. */
type Parts = { database: Database; log: Log; counted: () => StateChange[]; changed: () => void; reset: (error: unknown) => void }
