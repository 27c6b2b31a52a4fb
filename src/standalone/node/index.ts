import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { ReflexConfig } from '../config.ts'
import { createReflex as create, type StandaloneReflex } from '../reflex.ts'
import { SCHEMA, sqlLog, sqlRows, type StandaloneSql } from '../rows.ts'
import { ArchivedLog, type LogArchiveConfig } from './log-archive.ts'
import { storageOver, type Storage } from '../storage.ts'

/** `archive`: a folder for log entries that are older than its `keep_days`, by default 7. */
type FileConfig = { file: string; archive?: LogArchiveConfig }

/** As in `reflex-agents/wrap`, with `storage: {file}` for one SQLite file. */
export function createReflex({
  storage = 'memory',
  ...config
}: Omit<ReflexConfig, 'storage'> & { storage?: ReflexConfig['storage'] | FileConfig }): StandaloneReflex {
  const { project, now } = config
  if (typeof storage === 'string' || !('file' in storage)) return create({ ...config, storage })
  const archive = storage.archive && { ...storage.archive, project, ...(now && { now }) }
  return create({ ...config, storage: fileStorage(storage.file, archive) })
}

/** An SQLite file that survives a killed process. Log entries are not synced at once. */
export function fileStorage(file: string, archive?: ConstructorParameters<typeof ArchivedLog>[2]): Storage {
  const durable = opened(file, 'FULL')
  const log = opened(file, 'NORMAL')
  const live = sqlLog(sqlOf(log))
  return storageOver(sqlRows(sqlOf(durable)), archive ? new ArchivedLog(sqlOf(log), live, archive) : live, () => {
    log.close()
    durable.close()
  })
}

function opened(file: string, synchronous: 'FULL' | 'NORMAL'): DatabaseSync {
  const database = new DatabaseSync(file)
  database.exec(`PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; ${SCHEMA}`)
  return database
}

function sqlOf(database: DatabaseSync): StandaloneSql {
  const statements = new Map<string, StatementSync>()
  return {
    all(sql, ...values) {
      const statement = statements.get(sql) ?? database.prepare(sql)
      statements.set(sql, statement)
      return statement.all(...values)
    },
    atomic(work) {
      database.exec('BEGIN IMMEDIATE')
      try {
        const result = work()
        database.exec('COMMIT')
        return result
      } catch (error) {
        database.exec('ROLLBACK')
        throw error
      }
    },
  }
}
