import { isLaid, scopeTables } from '../../src/engine/storage/scope-tables.ts'
import { CRASH, crash, inObject, stubOf } from './scopes.ts'

/** Just before the journal's write number `at`, which is never made, or just after it. */
export type Place = { at: number; side: 'before' | 'after' }

/**
 * The life of an object: its number of writes to the journal and, if it died, the steps that had
 * started and not ended.
 */
export type Life = { writes: number; died: boolean; buried: boolean; over: boolean; lost: { phase: string; place: number }[] }

class Death extends Error {}

// Background work of a dying object rejects without a handler: vitest would report it from within
// the dead object, and hang.
const listeners = process.listeners('unhandledRejection')
process.removeAllListeners('unhandledRejection')
process.on('unhandledRejection', (error, promise) => {
  if (!(error instanceof Death)) for (const listener of listeners) listener(error, promise)
})

const WRITE = /^\s*(?:INSERT|UPDATE|DELETE)\b/i
const JOURNAL = /^\s*(?:INSERT (?:OR REPLACE )?INTO|UPDATE|DELETE FROM) (?:skill_\w+|effects|parked_runs|outbox|jobs|action_keys|log)\b/i

/**
 * Counts the object's writes to its journal and log. At `place` the object dies: earlier writes are
 * on disk, and later work has no effect. It can be rebuilt.
 */
export async function live(scope: string, place: Place | null): Promise<Life> {
  const life: Life = { writes: 0, died: false, buried: false, over: false, lost: [] }
  await inObject(stubOf(scope), (state) => {
    const { storage } = state
    const { sql } = storage
    const exec = sql.exec.bind(sql)
    const transactionSync = storage.transactionSync.bind(storage)
    const abort = state.abort.bind(state)
    let depth = 0
    let journalled = false

    const die = (): never => {
      life.died = true
      throw new Death('this object is dead')
    }
    const outermost = <Result>(work: () => Result): Result => {
      journalled = false
      const made = transactionSync(() => {
        const result = work()
        if (journalled) life.writes += 1
        if (journalled && place?.side === 'before' && life.writes === place.at) die()
        return result
      })
      if (journalled && place?.side === 'after' && life.writes === place.at) die()
      return made
    }
    // The scope treats it as a failed unit of work and resets, which would also drop the last
    // write.
    state.abort = (reason) => (reason === CRASH ? abort(reason) : undefined)
    sql.exec = ((query: string, ...bindings: unknown[]) => {
      if (life.died && WRITE.test(query)) die()
      journalled ||= JOURNAL.test(query)
      return exec(query, ...bindings)
    }) as typeof sql.exec
    storage.transactionSync = (work) => {
      if (life.died) die()
      depth += 1
      try {
        return depth === 1 ? outermost(work) : transactionSync(work)
      } catch (error) {
        if (life.died && depth === 1 && isLaid(scopeTables(storage))) {
          life.lost = exec<Life['lost'][number]>(`SELECT phase, place FROM effects WHERE phase <> 'call' AND step IS NULL`).toArray()
        }
        throw error
      } finally {
        depth -= 1
      }
    }
  })
  if (place) void bury(scope, life)
  return life
}

/** From outside, once its writes are on disk: until it is rebuilt, nothing it does is kept. */
async function bury(scope: string, life: Life): Promise<void> {
  while (!life.died && !life.over) await scheduler.wait(5)
  if (life.died) await crash(scope)
  life.buried = life.died
}
