import { readdirSync, readFileSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { LazyTables, Schema } from '../../src/kernel/lazy-tables.ts'
import { Database } from '../../src/kernel/unit.ts'

const folder = 'migrations/scope'
const schema = readdirSync(folder)
  .filter((name) => name.endsWith('.sql'))
  .toSorted()
  .map((name) => readFileSync(`${folder}/${name}`, 'utf8'))

const steps = schema.flatMap((file) => file.split('--> statement-breakpoint'))

/**
 * The storage of a scope in memory, with its tables. `lazy`: each is laid by its first row.
 * `synced` resolves the waits for the disk.
 */
export function openScopeStorage({ lazy = false }: { lazy?: boolean } = {}) {
  const sqlite = new DatabaseSync(':memory:')
  if (!lazy) for (const sql of schema) sqlite.exec(sql)
  const disk = Promise.withResolvers<void>()
  // node:sqlite takes no ArrayBuffer.
  const bound = (value: SQLInputValue | ArrayBuffer) => (value instanceof ArrayBuffer ? new Uint8Array(value) : value)
  const rowsOf = (sql: string, ...params: (SQLInputValue | ArrayBuffer)[]) => sqlite.prepare(sql).all(...params.map(bound))
  let depth = 0
  const transactionSync = <Made>(work: () => Made): Made => {
    const place = `unit_${depth}`
    depth += 1
    sqlite.exec(`SAVEPOINT ${place}`)
    try {
      const made = work()
      sqlite.exec(`RELEASE ${place}`)
      return made
    } catch (error) {
      sqlite.exec(`ROLLBACK TO ${place}; RELEASE ${place}`)
      throw error
    } finally {
      depth -= 1
    }
  }
  const exec = (sql: string, ...params: SQLInputValue[]) => {
    const rows = rowsOf(sql, ...params)
    return { rowsWritten: 0, toArray: () => rows, [Symbol.iterator]: () => rows[Symbol.iterator]() }
  }
  const storage = { sql: { exec }, transactionSync, sync: () => disk.promise } as unknown as DurableObjectStorage
  const tables = new LazyTables(storage.sql, new Schema(steps))
  const database = new Database(storage, { laid: true, lay: () => {}, tables })
  return { database, tables, rowsOf, synced: disk.resolve }
}
