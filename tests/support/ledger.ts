import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { layTables } from '../../src/kernel/lay-tables.ts'
import { Ledger } from '../../src/features/market/ledger/ledger.ts'
import { LEDGER_TABLES } from '../../src/features/market/ledger/tables.ts'

/** A ledger in SQLite of Node. `before` is called before each statement, for crashes. */
export function openLedger(file = ':memory:', before: () => void = () => {}, most: { failures?: number; bytes?: number } = {}) {
  const database = new DatabaseSync(file)
  const exec = (query: string, ...bound: SQLInputValue[]) => {
    before()
    if (bound.length === 0 && !/^\s*(?:SELECT|WITH)/i.test(query)) {
      database.exec(query)
      return cursor([])
    }
    return cursor(database.prepare(query).all(...bound))
  }
  const sql = { exec } as unknown as SqlStorage
  const transaction = <Made>(work: () => Made): Made => {
    database.exec('BEGIN IMMEDIATE')
    try {
      const made = work()
      before()
      database.exec('COMMIT')
      return made
    } catch (error) {
      database.exec('ROLLBACK')
      throw error
    }
  }
  transaction(() => layTables(sql, 'ledger', LEDGER_TABLES))
  const reopen = () => new Ledger(sql, { failures: Infinity, bytes: Infinity, ...most })
  return { database, ledger: reopen(), reopen, transaction }
}

type Passing = { ledger: Ledger; transaction: <Made>(work: () => Made) => Made; before: number; now: number }

/** A whole pass, in which what is older than `before` leaves, and which nothing refers to. */
export function passOf({ ledger, transaction, before, now }: Passing, { limit = 500, in_use = [] as string[] } = {}): void {
  for (let is_over = false; !is_over;) {
    is_over = transaction(() => {
      for (const mark of ['copied', 'news']) ledger.setMark(mark, ledger.newest)
      const portion = ledger.departing({ before, limit, isInUse: (ids) => new Set(ids.filter((id) => in_use.includes(id))) })
      return ledger.depart(portion, { before, limit, now })
    })
  }
}

const cursor = (rows: unknown[]) => ({ toArray: () => rows, one: () => rows[0], [Symbol.iterator]: () => rows[Symbol.iterator]() })
