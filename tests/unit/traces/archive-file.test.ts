import { DuckDBInstance } from '@duckdb/node-api'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { decodeArchive, encodeArchive, type ArchiveKind, type ArchiveLine } from '../../../src/base/archive-file.ts'

const AT = '2026-11-22T10:00:00.123Z'
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const entry = (seq: number, more: object = {}): ArchiveLine => ({
  seq,
  text: JSON.stringify({
    seq,
    at: AT,
    kind: 'effect-ended',
    trace_id: TRACE,
    span_id: 'b7ad6b7169203331',
    parent_id: null,
    duration_ms: 1.5,
    ...more,
  }),
})
const event = (seq: number, more: object = {}): ArchiveLine => {
  const payload = { id: `e${seq}`, type: 'test.note', text: 'naïve "quotes"\n' }
  const row = { seq, id: `e${seq}`, type: 'test.note', source: 'test', timestamp: AT, trace_id: TRACE, accepted_at: AT, ended_at: AT }
  const rest = { status: 'completed', attempts: 1, error: null, outcome: { by: 'turn', turn_id: 't', result: { x: 1 } }, payload }
  return { seq, text: JSON.stringify({ ...row, ...rest, ...more }) }
}

const fileOf = (kind: ArchiveKind, lines: ArchiveLine[], format: 'jsonl' | 'parquet') => {
  const file = [...encodeArchive(kind, 'team/a', lines)].find((one) => one.format === format)
  if (!file) throw new Error(`no ${format}`)
  return file
}

/** Runs a query of DuckDB on one Parquet file, which the query calls FILE. */
async function query(kind: ArchiveKind, lines: ArchiveLine[], sql: string): Promise<unknown[]> {
  const file = path.join(mkdtempSync(path.join(tmpdir(), 'reflex-archive-')), 'file.parquet')
  writeFileSync(file, fileOf(kind, lines, 'parquet').bytes)
  const database = await DuckDBInstance.create(':memory:')
  const connection = await database.connect()
  const answer = await connection.runAndReadAll(sql.replaceAll('FILE', `'${file}'`))
  return answer.getRowObjectsJson()
}

describe('an archive file in JSONL', () => {
  test('is read back line by line, byte for byte', () => {
    const lines = [entry(1, { text: 'line\nbreak' }), entry(2, { text: '\u2028 ünïcode' })]
    const { bytes, sha256 } = fileOf('log', lines, 'jsonl')
    expect(decodeArchive(bytes, sha256)).toEqual(lines.map(({ text }) => text))
  })

  test('is refused if a byte has changed', () => {
    const { bytes, sha256 } = fileOf('log', [entry(1)], 'jsonl')
    bytes[20] = (bytes[20] ?? 0) ^ 1
    expect(decodeArchive(bytes, sha256)).toBeNull()
  })
})

describe('an archive file in Parquet', () => {
  test('has the typed columns of the log', async () => {
    const columns = await query('log', [entry(1)], 'DESCRIBE SELECT * FROM FILE')
    expect(columns.map((column) => Object.values(column as object).slice(0, 2))).toEqual([
      ['at', 'TIMESTAMP'],
      ['seq', 'BIGINT'],
      ['scope', 'VARCHAR'],
      ['kind', 'VARCHAR'],
      ['trace_id', 'VARCHAR'],
      ['span_id', 'VARCHAR'],
      ['parent_id', 'VARCHAR'],
      ['duration_ms', 'DOUBLE'],
      ['entry', 'JSON'],
    ])
  })

  test('has the typed columns of events', async () => {
    const columns = await query('events', [event(1)], 'DESCRIBE SELECT * FROM FILE')
    expect(columns.map((column) => Object.values(column as object).slice(0, 2))).toEqual([
      ['seq', 'BIGINT'],
      ['id', 'VARCHAR'],
      ['scope', 'VARCHAR'],
      ['type', 'VARCHAR'],
      ['source', 'VARCHAR'],
      ['timestamp', 'TIMESTAMP'],
      ['trace_id', 'VARCHAR'],
      ['accepted_at', 'TIMESTAMP'],
      ['ended_at', 'TIMESTAMP'],
      ['status', 'VARCHAR'],
      ['attempts', 'BIGINT'],
      ['error', 'VARCHAR'],
      ['outcome', 'JSON'],
      ['payload', 'JSON'],
    ])
  })

  test('has the typed columns of parts', async () => {
    const part = { seq: 0, text: JSON.stringify({ hash: 'ab', at: AT, value: { model: 'm' } }) }
    const rows = await query('parts', [part], `SELECT hash, "at", scope, value->>'$.model' AS model, typeof(value) AS type FROM FILE`)
    expect(rows).toEqual([{ hash: 'ab', at: '2026-11-22 10:00:00.123', scope: 'team/a', model: 'm', type: 'JSON' }])
  })

  test('answers a query of DuckDB on the log, also within the JSON of an entry', async () => {
    const lines = [
      entry(1, { tool: 'act' }),
      entry(2, { tool: 'act', duration_ms: 2.5 }),
      entry(3, { kind: 'turn-ended', duration_ms: null }),
    ]
    const sql = `SELECT scope, kind, entry->>'$.tool' AS tool, count(*) AS n, sum(duration_ms) AS ms, max("at") AS newest
      FROM FILE GROUP BY ALL ORDER BY kind`
    expect(await query('log', lines, sql)).toEqual([
      { scope: 'team/a', kind: 'effect-ended', tool: 'act', n: '2', ms: 4, newest: '2026-11-22 10:00:00.123' },
      { scope: 'team/a', kind: 'turn-ended', tool: null, n: '1', ms: null, newest: '2026-11-22 10:00:00.123' },
    ])
  })

  test('keeps the values of events, nulls and any text included', async () => {
    const lines = [event(1), event(2, { outcome: null, error: 'lost', timestamp: 'never' })]
    const sql = `SELECT seq, id, "timestamp" AS at, error, outcome->>'$.result.x' AS x, payload->>'$.text' AS text FROM FILE ORDER BY seq`
    expect(await query('events', lines, sql)).toEqual([
      { seq: '1', id: 'e1', at: '2026-11-22 10:00:00.123', error: null, x: '1', text: 'naïve "quotes"\n' },
      { seq: '2', id: 'e2', at: null, error: 'lost', x: null, text: 'naïve "quotes"\n' },
    ])
  })

  test.each(['log', 'events'] as const)('of %s has the same bytes for the same rows', (kind) => {
    const lines = kind === 'log' ? [entry(1), entry(2)] : [event(1), event(2)]
    expect([...encodeArchive(kind, 'a', lines)]).toEqual([...encodeArchive(kind, 'a', lines)])
  })
})
