import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import type { StepEnd } from '../../../src/skills/runner/ports.ts'
import type { ApprovedRun, RunRecord } from '../../../src/skills/session/ports.ts'
import { memoryStorage } from '../../../src/standalone/storage.ts'
import { fileStorage } from '../../../src/standalone/node/index.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'reflex-'))
let files = 0

const record = (run_id: string, skill_id: string, started_at: number): RunRecord =>
  ({ run_id, skill_id, started_at, approval_id: null }) as RunRecord
const done = { status: 'ok', reason: null, output: null, error: null, cost_usd: 0, attempts: 1, duration_ms: 1 } satisfies StepEnd
const begun = { phase: 'step', index: 0, tool: 'save', idempotence_key: null, at: 1 } as const

describe.each([
  ['memory', memoryStorage],
  ['a file', () => fileStorage(path.join(folder, `${++files}.sqlite`))],
])('storage in %s', (_, open) => {
  test('keeps beginnings and ends apart, a second one in place of the first', async () => {
    const { journal } = open()
    await journal.begin('run-1', begun)
    expect(await journal.load('run-1')).toEqual([{ phase: 'step', index: 0, begun, end: null }])
    await journal.begin('run-1', { ...begun, at: 2 })
    await journal.end('run-1', begun, done)
    await journal.end('run-1', { phase: 'compensation', index: 0 }, done)
    expect(await journal.load('run-1')).toEqual([
      { phase: 'step', index: 0, begun: { ...begun, at: 2 }, end: done },
      { phase: 'compensation', index: 0, begun: null, end: done },
    ])
    expect(await journal.load('run-2')).toEqual([])
  })

  test('knows what runs, when it last ran and whether that went well', async () => {
    const { runs } = open()
    expect(runs.usage('a')).toEqual({ last_run_at: null, running: 0 })
    await runs.begin(record('run-1', 'a', 10))
    await runs.begin(record('run-2', 'a', 20))
    expect(runs.usage('a')).toEqual({ last_run_at: 20, running: 2 })
    expect(runs.unfinished()).toEqual([record('run-1', 'a', 10), record('run-2', 'a', 20)])
    await runs.end('run-1', { skill_id: 'a', status: 'ok', ended_at: 30 })
    expect(runs.usage('a')).toEqual({ last_run_at: 20, running: 1 })
    expect([...runs.recentSuccess()]).toEqual(['a'])
    await runs.end('run-2', { skill_id: 'a', status: 'failed', ended_at: 31 })
    expect([...runs.recentSuccess()]).toEqual([])
  })

  test('keeps an approved run until its record is there', async () => {
    const { approvals, runs } = open()
    approvals.put({ approval_id: 'a-1', skill_id: 'a' } as ApprovedRun)
    approvals.put({ approval_id: 'a-2', skill_id: 'a' } as ApprovedRun)
    approvals.approve('a-1')
    expect(approvals.approved()).toMatchObject([{ approval_id: 'a-1' }])
    await runs.begin({ ...record('run-1', 'a', 10), approval_id: 'a-1' })
    expect(approvals.approved()).toEqual([])
    expect(approvals.waiting()).toMatchObject([{ approval_id: 'a-2' }])
    expect([approvals.remove('a-2'), approvals.remove('a-2')]).toEqual([true, false])
  })

  test('gives an approval once, outputs by key and entries by trace', async () => {
    const { approvals, outputs, log } = open()
    approvals.put({ approval_id: 'a-1', skill_id: 'a' } as ApprovedRun)
    expect(approvals.waiting()).toHaveLength(1)
    expect(approvals.approve('a-1')).toMatchObject({ skill_id: 'a' })
    expect(approvals.approve('a-1')).toBeNull()
    expect(approvals.waiting()).toEqual([])
    expect(await outputs.get('key')).toBeUndefined()
    await outputs.put('key', null)
    expect(await outputs.get('key')).toBeNull()
    for (const trace_id of ['one', 'two', 'one']) log.append({ at: 'now', kind: 'x', trace_id })
    expect(log.entries({ trace_id: 'one' }).map(({ seq }) => seq)).toEqual([1, 3])
    expect(log.entries({ after: 1, limit: 1 })).toEqual([{ at: 'now', kind: 'x', trace_id: 'two', seq: 2 }])
  })
})

test('a file is there again when it is opened again', async () => {
  const file = path.join(folder, 'again.sqlite')
  const before = fileStorage(file)
  await before.outputs.put('key', { a: 1 })
  before.close()
  expect(await fileStorage(file).outputs.get('key')).toEqual({ a: 1 })
})
