import type { Database, StateChange } from './database.ts'
import type { Guard, Work } from './guard.ts'
import type { Log } from './log.ts'

/**
 * Runs synchronous work that is kept as a whole or not at all. `of` says what it is done for, so
 * that a failure is counted against that; within another unit, the outer one's counts.
 */
export type UnitOfWork = <Result>(work: () => Result, of?: Work) => Result

/**
 * After work that threw half way, memory and disk differ: `reset` drops the object, and the next
 * request builds it from what is on disk. Until then nothing more is written. Expected failures
 * never get here; they are data.
 */
export function unitOfWork({ database, log, counted, changed, guard, reset }: Parts): UnitOfWork {
  let at_hand: Work | undefined
  let depth = 0
  let failure: { error: unknown } | null = null
  const keep = <Result>(work: () => Result): Result => {
    const result = database.transaction(() => {
      log.gather()
      const made = work()
      // A unit within this one failed, and its failure was caught on the way.
      if (failure) throw failure.error
      database.writeAll(counted())
      log.written()
      return made
    })
    if (database.laid) changed()
    if (depth === 1) log.announce()
    return result
  }
  return (work, of) => {
    if (failure && depth === 0) throw failure.error
    const outer = at_hand
    at_hand ??= of
    depth += 1
    try {
      return keep(work)
    } catch (error) {
      failure ??= { error }
      // Outside of all transactions, or the count would be rolled back, too.
      if (depth === 1) {
        try {
          if (at_hand) guard.failed(at_hand, error)
        } catch {
          // The storage takes nothing any more; the object is dropped all the same.
        }
        reset(error)
      }
      throw error
    } finally {
      depth -= 1
      at_hand = outer
    }
  }
}

/** `counted`: what was counted in memory and is to be kept. */
type Parts = {
  database: Database
  log: Log
  counted: () => StateChange[]
  changed: () => void
  guard: Pick<Guard, 'failed'>
  reset: (error: unknown) => void
}
