import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import path from 'node:path'
import type { Env } from '../../src/env.ts'
import type { Transfer } from '../../src/features/market/contract/transfer.ts'
import { departures } from '../../src/features/market/departures.ts'
import { copyTransfers } from '../../src/features/market/store/ledger.ts'
import { openLedger } from './ledger.ts'

const DAY = 86_400_000
const DAYS = 40
export const NOW = 1000 * DAY
const OLD = NOW - 2 * DAYS * DAY

/** As much of a D1 as the copies of transfers need. `before` is called around each statement. */
function fileD1(file: string, before: () => void) {
  const database = new DatabaseSync(file)
  database.exec(`CREATE TABLE IF NOT EXISTS ledger_transfers (seq INTEGER PRIMARY KEY, id TEXT, debit TEXT, credit TEXT, amount INTEGER,
    kind TEXT, code TEXT, memo TEXT, pending_id TEXT, expires_at TEXT, "by" TEXT, at TEXT)`)
  const all = (sql: string, bound: SQLInputValue[]) => {
    before()
    const results = database.prepare(sql).all(...bound)
    before()
    return { results }
  }
  const prepare = (sql: string, bound: SQLInputValue[] = []) => ({
    bind: (...values: SQLInputValue[]) => prepare(sql, values),
    all: async () => all(sql, bound),
    first: async (column: string) => all(sql, bound).results[0]?.[column],
  })
  const batch = async (statements: ReturnType<typeof prepare>[]) => Promise.all(statements.map((statement) => statement.all()))
  return { database, db: { prepare, batch } as unknown as D1Database }
}

/** Opens a ledger and its D1 in a folder. `before` is called before each statement. */
export function openDeparting(folder: string, before: () => void = () => {}, limit = 8) {
  const { ledger, reopen, transaction, database } = openLedger(path.join(folder, 'ledger.sqlite'), before)
  const copies = fileD1(path.join(folder, 'd1.sqlite'), before)
  const source = departures({
    ledger,
    days: DAYS,
    now: () => NOW,
    act: (work) => transaction(() => work(NOW)),
    rooms: () => [{ inUse: (ids) => ids.filter((id) => id.startsWith('agent:in-use')) }],
    limit,
  })
  const pass = async (): Promise<void> => {
    while (source.waiting) await source.send({ DB: copies.db } as Env)
  }
  const close = (): void => {
    database.close()
    copies.database.close()
  }
  return { ledger, reopen, transaction, database, copies, pass, close }
}

/** Thirty old transfers and some young ones, of which D1 has the first ten. */
export async function prepareDeparting(folder: string): Promise<Transfer[]> {
  const { ledger, transaction, copies, close } = openDeparting(folder)
  const [a, b] = ['scope:a', 'scope:b']
  const options = { opens: [a, b], privileged: false }
  transaction(() => ledger.mint({ id: 'mint', to: a, amount: 1000 }, options, OLD))
  const pays = (id: string, more: object = {}) => ({ id, debit: a, credit: b, amount: 7, ...more })
  for (let round = 1; round <= 7; round += 1) {
    const old = [
      pays(`single-${round}`),
      pays(`open-${round}`, { pending: true }),
      pays(`held-${round}`, { pending: true }),
      { id: `ended-${round}`, pending_id: `held-${round}`, post: 3 },
      pays(`agent:in-use-${round}`),
      pays(`broke-${round}`, { amount: 5000 }),
    ]
    transaction(() => ledger.transfer(old, options, OLD + round))
  }
  transaction(() => ledger.transfer([pays('young'), pays('newest')], options, NOW - DAY))
  const { items } = ledger.history({ after: null, limit: 100 })
  await copyTransfers(copies.db, items.slice(0, 10))
  for (const mark of ['copied', 'news']) transaction(() => ledger.setMark(mark, ledger.newest))
  close()
  return items
}
