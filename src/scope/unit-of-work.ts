import type { Database } from './database.ts'

/** Runs synchronous work that is kept as a whole or not at all. */
export type UnitOfWork = <Result>(work: () => Result) => Result

/**
 * After work that threw half way, memory and disk may differ: `reset` drops the object, and the next request builds it from what is on disk. Expected
 * failures never get here; they are data.
 */
export function unitOfWork({ database, save, changed, reset }: Parts): UnitOfWork {
  return (work) => {
    try {
      const result = database.transaction(() => {
        const made = work()
        save()
        return made
      })
      changed()
      return result
    } catch (error) {
      reset(error)
      throw error
    }
  }
}

/** `save` writes what is counted in memory, in the same transaction. */
type Parts = { database: Database; save: () => void; changed: () => void; reset: (error: unknown) => void }
