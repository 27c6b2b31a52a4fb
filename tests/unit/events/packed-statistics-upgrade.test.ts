import { readdirSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'

const ROWIDS = /_statistics_rowids\.sql$/
const files = readdirSync('migrations')
  .filter((file) => file.endsWith('.sql'))
  .toSorted()

function migrate(database: DatabaseSync, some: readonly string[]): void {
  for (const file of some) database.exec(readFileSync(`migrations/${file}`, 'utf8'))
}

test('an upgrade keeps the packed statistics, whose keys are compared without reading their values', () => {
  const database = new DatabaseSync(':memory:')
  const nth = files.findIndex((file) => ROWIDS.test(file))
  migrate(database, files.slice(0, nth))
  const put = database.prepare(
    `INSERT INTO statistics_packs (family, bucket, start, part, revision, scopes, seqs) VALUES ('scope', 'minute', ?, '', 3, jsonb(?), '{"a":7}')`,
  )
  for (const start of [60_000, 120_000]) put.run(start, '{"a":{"":{"accepted":2}}}')
  migrate(database, files.slice(nth))
  const stored = database.prepare('SELECT start, part, revision, json(scopes) AS scopes, seqs FROM statistics_packs ORDER BY start').all()
  const row = { part: '', revision: 3, scopes: '{"a":{"":{"accepted":2}}}', seqs: '{"a":7}' }
  expect(stored).toEqual([60_000, 120_000].map((start) => ({ start, ...row })))
  expect(() => put.run(60_000, '{}')).toThrow('UNIQUE constraint failed')
  const plan = database.prepare(
    `EXPLAIN QUERY PLAN SELECT 1 FROM statistics_packs WHERE family = 'scope' AND bucket = 'minute' AND start = 60000 AND part = ''`,
  )
  expect(plan.all()).toMatchObject([{ detail: expect.stringContaining('USING COVERING INDEX statistics_packs_bucket') as string }])
})
