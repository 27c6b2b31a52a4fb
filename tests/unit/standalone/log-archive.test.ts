import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { fileStorage } from '../../../src/standalone/node/index.ts'

const DAY_MS = 86_400_000
const START = Date.parse('2026-11-01T12:00:00Z')
const place = () => mkdtempSync(path.join(tmpdir(), 'reflex-log-'))
const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.\w+$/.test(name))
    .toSorted()
const close: (() => void)[] = []
afterEach(() => {
  for (const one of close.splice(0)) one()
})

function storage(root: string, now: () => number, folder = path.join(root, 'archive')) {
  const opened = fileStorage(path.join(root, 'x.reflex'), { folder, project: 'shop', now })
  close.push(() => opened.close())
  return opened
}

/** A log with two entries a day for ten days, whose last day is now. */
function lived(root: string) {
  const clock = { now: START }
  const { log } = storage(root, () => clock.now)
  for (let day = 0; day < 10; day += 1) {
    clock.now = START + day * DAY_MS
    for (const trace_id of ['a', `b${day}`]) log.append({ at: new Date(clock.now).toISOString(), kind: 'tool-called', trace_id })
  }
  return { log, clock }
}

describe('the log of a standalone process with an archive', () => {
  test('moves whole days to files, and reads them as if they were still there', () => {
    const root = place()
    const { log } = lived(root)
    expect(log.entries().map(({ seq }) => seq)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
    expect(log.entries({ after: 2, limit: 3 }).map(({ seq }) => seq)).toEqual([3, 4, 5])
    expect(log.entries({ trace_id: 'b1' }).map(({ seq, at }) => [seq, at])).toEqual([[4, '2026-11-02T12:00:00.000Z']])
    expect(log.entries({ trace_id: 'a' })).toHaveLength(10)
    expect(filesIn(path.join(root, 'archive'))).toEqual([
      'log/day=2026-11-01/shop/000000000001.jsonl.gz',
      'log/day=2026-11-01/shop/000000000001.parquet',
      'log/day=2026-11-02/shop/000000000003.jsonl.gz',
      'log/day=2026-11-02/shop/000000000003.parquet',
    ])
  })

  test('keeps numbering and finds its files after a restart', () => {
    const root = place()
    const { clock } = lived(root)
    close.pop()?.()
    clock.now += 30 * DAY_MS
    const { log } = storage(root, () => clock.now)
    log.append({ at: new Date(clock.now).toISOString(), kind: 'tool-called', trace_id: 'z' })
    expect(log.entries().map(({ seq }) => seq)).toEqual(Array.from({ length: 21 }, (_, index) => index + 1))
    expect(filesIn(path.join(root, 'archive'))).toHaveLength(20)
  })

  test('deletes nothing while the folder cannot be written, and catches up', () => {
    const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
    const root = place()
    writeFileSync(path.join(root, 'archive'), 'not a folder')
    const { log, clock } = lived(root)
    expect(warned.mock.calls.flat().join(' ')).toContain('failed to archive the log')
    expect(log.entries()).toHaveLength(20)
    rmSync(path.join(root, 'archive'))
    clock.now += 120_000
    log.append({ at: new Date(clock.now).toISOString(), kind: 'tool-called', trace_id: 'z' })
    expect(filesIn(path.join(root, 'archive'))).toHaveLength(4)
    expect(log.entries().map(({ seq }) => seq)).toEqual(Array.from({ length: 21 }, (_, index) => index + 1))
    warned.mockRestore()
  })

  test('overwrites a file of a process that died before its manifest had it', () => {
    const root = place()
    const day = path.join(root, 'archive/log/day=2026-11-01/shop')
    mkdirSync(day, { recursive: true })
    writeFileSync(path.join(day, '000000000001.jsonl.gz'), 'half')
    const { log } = lived(root)
    expect(log.entries({ limit: 2 }).map(({ seq }) => seq)).toEqual([1, 2])
    expect(filesIn(day)).toEqual(['000000000001.jsonl.gz', '000000000001.parquet'])
  })

  test('refuses a file with a changed byte', () => {
    const root = place()
    const { log } = lived(root)
    writeFileSync(path.join(root, 'archive/log/day=2026-11-01/shop/000000000001.jsonl.gz'), 'other')
    expect(() => log.entries()).toThrow('is damaged')
    expect(log.entries({ after: 2 })).toHaveLength(18)
  })
})
