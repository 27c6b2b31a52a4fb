import { DuckDBInstance } from '@duckdb/node-api'
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { encodeArchive, type ArchiveKind } from '../../../src/base/archive-file.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const AT = '2026-11-22T10:00:00.000Z'
const folder = mkdtempSync(path.join(tmpdir(), 'reflex-archive-'))
const queries = [...readFileSync('docs/archive.md', 'utf8').matchAll(/```sql\n([^`]*)```/g)].map(([, sql = '']) => sql)

function put(kind: ArchiveKind, day: string, scope: string, rows: { seq: number }[]): void {
  const files = encodeArchive(
    kind,
    scope,
    rows.map((row) => ({ seq: row.seq, text: JSON.stringify(row) })),
  )
  const place = path.join(folder, kind, `day=${day}`, scope)
  mkdirSync(place, { recursive: true })
  for (const { format, bytes } of files) if (format === 'parquet') writeFileSync(path.join(place, '00000001.parquet'), bytes)
}
const entry = (seq: number, tool: string, duration_ms: number, trace_id = TRACE) => ({
  seq,
  at: AT,
  kind: 'effect-ended',
  trace_id,
  span_id: `s${seq}`,
  parent_id: null,
  duration_ms,
  tool,
})
put('log', '2026-11-22', 'a', [entry(1, 'fast', 1), entry(2, 'slow', 40)])
put('log', '2026-11-22', 'b', [entry(1, 'fast', 3)])
put('log', '2026-11-21', 'a', [entry(9, 'slow', 900, 'f'.repeat(32))])
const row = { id: 'e1', type: 'test.note', accepted_at: AT, ended_at: '2026-11-22T10:00:00.250Z', status: 'completed' }
put('events', '2026-11-22', 'a', [{ seq: 1, ...row, outcome: { by: 'reflex' }, payload: {} } as { seq: number }])

async function answer(sql: string): Promise<unknown[]> {
  const database = await DuckDBInstance.create(':memory:')
  const connection = await database.connect()
  return (await connection.runAndReadAll(sql.replaceAll("'archive/", `'${folder}/`))).getRowObjectsJson()
}

describe('the queries of docs/archive.md', () => {
  test.each([
    [
      'the slowest tools',
      0,
      [
        { tool: 'slow', calls: '1', p95_ms: 40 },
        { scope: 'b', p95_ms: 3 },
        { scope: 'a', p95_ms: 1 },
      ],
    ],
    [
      'a trace over all scopes',
      1,
      [
        { scope: 'a', seq: '1' },
        { scope: 'a', seq: '2' },
        { scope: 'b', seq: '1' },
      ],
    ],
    ['the ends of events', 2, [{ type: 'test.note', status: 'completed', ended_by: 'reflex', events: '1', mean_ms: 250 }]],
  ])('find %s in DuckDB', async (_, index, expected) => {
    expect(await answer(queries[index] ?? '')).toMatchObject(expected)
  })
})
