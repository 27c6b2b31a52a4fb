import { describe, expect, test } from 'vitest'
import { refusalOf } from '../../support/scans.ts'

const plan = (...details: string[]) => details.map((detail) => ({ detail }))

describe('a statement that scans', () => {
  test.each([
    ['what grows', 'SELECT count(*) FROM events WHERE ended_at > 5', 'SCAN events'],
    ['an index of it', `DELETE FROM effects WHERE status = 'done'`, 'SCAN effects USING INDEX effects_age'],
    ['it under another name', 'SELECT 1 FROM json_each(?1) AS asked CROSS JOIN log AS one', 'SCAN one'],
  ])('%s is refused', (_what, sql, detail) => {
    expect(refusalOf(sql, plan(detail))).toContain(` in: ${sql}`)
  })

  test.each([
    ['searches', 'SELECT * FROM events WHERE seq = ?', ['SEARCH events USING INTEGER PRIMARY KEY (rowid=?)']],
    ['reads open events', `SELECT seq FROM events WHERE status = 'pending'`, ['SCAN events USING INDEX events_claim']],
    ['reads what is small', 'SELECT * FROM timers', ['SCAN timers']],
    ['reads a function of JSON', 'SELECT value FROM json_each(?1) AS events', ['SCAN events VIRTUAL TABLE INDEX 1:']],
    ['reads its own part', 'WITH scopes (scope) AS (SELECT 1) SELECT * FROM scopes', ['SCAN scopes']],
    ['has a limit in the order of an index', 'SELECT at FROM log ORDER BY seq LIMIT 1', ['SCAN log']],
  ])('is taken if it %s', (_how, sql, details) => {
    expect(refusalOf(sql, plan(...details))).toBeNull()
  })

  test('in the order of no index is refused, whatever its limit', () => {
    expect(refusalOf('SELECT at FROM log ORDER BY at LIMIT 1', plan('SCAN log', 'USE TEMP B-TREE FOR ORDER BY'))).not.toBeNull()
  })
})
