import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openDeparting, prepareDeparting } from '../../support/departures.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'reflex-'))
afterAll(() => rmSync(folder, { recursive: true }))
const child = path.join(import.meta.dirname, 'departures-child.ts')

/** Runs the child in a copy of the prepared files. */
function run(name: string, dies_at: number) {
  const copy = path.join(folder, name)
  cpSync(path.join(folder, 'prepared'), copy, { recursive: true })
  const env = { ...process.env, NODE_COMPILE_CACHE: path.join(folder, 'cache') }
  const { stdout, stderr, signal } = spawnSync(process.execPath, ['--no-warnings', child, copy, String(dies_at)], { encoding: 'utf8', env })
  return { copy, stdout, stderr, killed: signal === 'SIGKILL' }
}

/** The state of the ledger and of D1. `left`: what D1 alone has. */
function stateOf(copy: string) {
  const { ledger, reopen, transaction, database, copies, close } = openDeparting(copy)
  const rows = (sql: string) => database.prepare(sql).all()
  const kept = ledger.history({ after: null, limit: 100 }).items
  const copied = copies.database.prepare('SELECT * FROM ledger_transfers ORDER BY seq').all()
  const state = {
    problems: [...transaction(() => reopen().check()), ...ledger.audit().problems],
    transfers: ledger.audit().transfers,
    kept,
    left: copied.filter(({ seq }) => !kept.some((one) => one.seq === seq)),
    accounts: ledger.accounts({ after: null, limit: 10 }).items,
    checkpoints: rows('SELECT * FROM departures ORDER BY n'),
    ids: rows('SELECT digest FROM departed_ids ORDER BY digest'),
    failed: rows('SELECT count(*) AS n FROM failed')[0],
    departing: rows('SELECT * FROM departing'),
  }
  close()
  return state
}

test(
  'a ledger whose process is killed before any statement of a pass keeps each transfer in one place',
  { timeout: 3_600_000 },
  async () => {
    mkdirSync(path.join(folder, 'prepared'))
    const history = await prepareDeparting(path.join(folder, 'prepared'))
    const whole = run('whole', 0)
    expect(whole.stderr).toBe('')
    const expected = stateOf(whole.copy)
    const stays = (id: string): boolean => /^(?:open|agent:in-use)-\d|^young$|^newest$/.test(id)
    expect(expected).toMatchObject({ problems: [], transfers: history.length, failed: { n: 0 }, departing: [] })
    expect(expected.kept.map(({ id }) => id)).toEqual(history.map(({ id }) => id).filter(stays))
    expect(expected.left).toEqual(history.filter(({ id }) => !stays(id)))
    expect(expected.checkpoints.length).toBeGreaterThan(2)

    const statements = Number(whole.stdout)
    expect(statements).toBeGreaterThan(50)
    for (let dies_at = 1; dies_at <= statements; dies_at += 1) {
      const { copy, killed } = run(`killed-${dies_at}`, dies_at)
      expect(killed).toBe(true)
      const { problems, transfers, kept, left, accounts } = stateOf(copy)
      expect({ dies_at, problems, transfers, accounts }).toEqual({
        dies_at,
        problems: [],
        transfers: history.length,
        accounts: expected.accounts,
      })
      expect([...kept, ...left].toSorted((one, other) => Number(one['seq']) - Number(other['seq']))).toEqual(history)
      const again = openDeparting(copy)
      await again.pass()
      again.close()
      expect(stateOf(copy)).toEqual(expected)
      rmSync(copy, { recursive: true })
    }
  },
)
