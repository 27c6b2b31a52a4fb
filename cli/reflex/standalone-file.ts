import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import type { LogStore } from '../../src/standalone/rows.ts'
import type { Storage } from '../../src/standalone/storage.ts'
import { CliError, messageOf } from '../lib/cli-error.ts'

/** The state of a standalone process, as in its file. */
export type StandaloneFile = Pick<Storage, 'skills' | 'approvals'> & { log: Pick<LogStore, 'entries'> }

export function isStandaloneFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile() && readStart(path, SQLITE.length) === SQLITE
}

const SQLITE = 'SQLite format 3'

function readStart(path: string, length: number): string {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(length)
    return bytes.toString('latin1', 0, readSync(file, bytes))
  } finally {
    closeSync(file)
  }
}

/**
 * Opens the file of a standalone process, which may be running, without changing it. Loaded on use:
 * a server's commands need no SQLite.
 */
export async function openStandalone(path: string): Promise<StandaloneFile> {
  if (!existsSync(path)) throw new CliError(`There is no file ${path}.`)
  const [{ DatabaseSync }, { sqlLog, sqlRows }, { storageOver }] = await Promise.all([
    import('node:sqlite'),
    import('../../src/standalone/rows.ts'),
    import('../../src/standalone/storage.ts'),
  ])
  try {
    const database = new DatabaseSync(path, { readOnly: true })
    const all = (text: string, ...values: (string | number | null)[]) => database.prepare(text).all(...values)
    const sql = { all, atomic: <Result>(work: () => Result) => work() }
    database.prepare('SELECT 1 FROM reflex_rows, reflex_log').get()
    return storageOver(sqlRows(sql), sqlLog(sql))
  } catch (error) {
    throw new CliError(`${path} is not the file of a standalone process: ${messageOf(error)}`, null, error)
  }
}
