import { cpSync, mkdirSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import { openDeparting, prepareDeparting } from '../../support/departures.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'reflex-'))

/** Lets old history leave. Returns the files before each statement, which a kill there leaves. */
async function passes(): Promise<string[]> {
  const live = path.join(folder, 'live')
  const copies: string[] = []
  const copy = (): void => {
    const killed = path.join(folder, `killed-${copies.length}`)
    cpSync(live, killed, { recursive: true })
    copies.push(killed)
  }
  const { pass, close } = openDeparting(live, copy)
  await pass()
  close()
  return copies
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

test('a ledger that is killed before any statement of a pass keeps each transfer in one place', { timeout: 3_600_000 }, async () => {
  mkdirSync(path.join(folder, 'live'))
  const history = await prepareDeparting(path.join(folder, 'live'))
  const copies = await passes()
  const expected = stateOf(path.join(folder, 'live'))
  const stays = (id: string): boolean => /^(?:open|agent:in-use)-\d|^young$|^newest$/.test(id)
  expect(expected).toMatchObject({ problems: [], transfers: history.length, failed: { n: 0 }, departing: [] })
  expect(expected.kept.map(({ id }) => id)).toEqual(history.map(({ id }) => id).filter(stays))
  expect(expected.left).toEqual(history.filter(({ id }) => !stays(id)))
  expect(expected.checkpoints.length).toBeGreaterThan(2)

  expect(copies.length).toBeGreaterThan(50)
  for (const copy of copies) {
    const { problems, transfers, kept, left, accounts } = stateOf(copy)
    expect({ copy, problems, transfers, accounts }).toEqual({ copy, problems: [], transfers: history.length, accounts: expected.accounts })
    expect([...kept, ...left].toSorted((one, other) => Number(one['seq']) - Number(other['seq']))).toEqual(history)
    const again = openDeparting(copy)
    await again.pass()
    again.close()
    expect(stateOf(copy)).toEqual(expected)
  }
})
