import { spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, test } from 'vitest'
import type { TransferResult } from '../../../src/features/market/contract/transfer.ts'
import { openLedger } from '../../support/ledger.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'reflex-'))
const child = path.join(import.meta.dirname, 'ledger-child.ts')

/** The environment variable sets the number of processes, each with ten operations. */
const KILLS = Number(process.env['REFLEX_LEDGER_KILLS'] ?? 12)

test('a ledger whose process is killed at any statement loses and makes nothing', { timeout: 3_600_000 }, () => {
  const file = path.join(folder, 'ledger.sqlite')
  const env = { ...process.env, NODE_COMPILE_CACHE: path.join(folder, 'cache') }
  let [killed, created, history] = [0, 0, 0]
  for (let round = 1; round <= KILLS; round += 1) {
    const dies_at = 20 + ((round * 7919) % 100)
    const { stdout, signal, stderr } = spawnSync(process.execPath, ['--no-warnings', child, file, String(round), String(dies_at)], {
      encoding: 'utf8',
      env,
    })
    expect(stderr).toBe('')
    killed += signal === 'SIGKILL' ? 1 : 0
    const answered = stdout.split('\n').flatMap((line) => (line.endsWith(']') ? (JSON.parse(line) as TransferResult[]) : []))
    const { database, ledger } = openLedger(file)
    const audit = ledger.audit()
    expect(audit).toMatchObject({ ok: true, problems: [] })
    expect(audit.debits).toBe(audit.credits)
    // The history has all that was answered, and keeps all that it had.
    const made = answered.filter(({ status }) => status === 'created').map(({ id }) => id)
    expect(ledger.transfers(made).map(({ id }) => id)).toEqual(made)
    expect(audit.transfers).toBeGreaterThanOrEqual(history + made.length)
    created += made.length
    history = audit.transfers
    database.close()
  }
  expect(killed).toBeGreaterThan(KILLS / 2)
  expect(created).toBeGreaterThan(KILLS)
})
