import { DatabaseSync } from 'node:sqlite'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { LazyTables, Schema } from '../../../src/kernel/lazy-tables.ts'
import { openScopeStorage } from '../../support/scope-storage.ts'
import { assertProperty } from '../../support/property.ts'

/** Each kind of statement that a scope runs, over tables that may have no row. */
const STATEMENTS: readonly (readonly [sql: string, ...params: (string | number)[]])[] = [
  [
    `INSERT INTO events (id, scope, type, source, timestamp, trace_id, payload, status, accepted_at) VALUES ('e', 's', 't', 'x', '', '', '{}', 'pending', 1)
    ON CONFLICT (id) DO UPDATE SET attempts = attempts + 1 RETURNING seq, attempts`,
  ],
  [`INSERT INTO state (key, value) VALUES ('a', '1') ON CONFLICT (key) DO UPDATE SET value = value || '1'`],
  [`INSERT INTO effects (owner, phase, place, status, started_at) SELECT 'turn', 'call', count(*), 'started', 1 FROM effects`],
  [`INSERT OR IGNORE INTO used_tickets (nonce, expires_at) VALUES (?, ?) RETURNING nonce`, 'n', 5],
  [`INSERT INTO jobs (kind, key, payload, locks, attempts) SELECT 'undo', owner, '{}', '[]', 0 FROM effects WHERE status = 'started'`],
  [
    `WITH open AS (SELECT owner FROM effects) INSERT INTO guard (kind, id, deaths, reason, at) SELECT 'turn', owner, 1, '', 1 FROM open WHERE true
    ON CONFLICT (kind, id) DO UPDATE SET deaths = deaths + 1`,
  ],
  [`UPDATE effects SET status = 'done', ended_at = 2 WHERE status = 'started' RETURNING place`],
  [`UPDATE events SET attempts = 9 WHERE NOT EXISTS (SELECT 1 FROM effects WHERE owner = events.id)`],
  [`DELETE FROM used_tickets WHERE expires_at < ?`, 9],
  [`DELETE FROM guard WHERE id IN (SELECT owner FROM effects) RETURNING id`],
  [`SELECT count(*) AS n, max(started_at) AS at FROM effects`],
  [`SELECT (SELECT count(*) FROM jobs) AS jobs, (SELECT count(*) FROM guard) AS guarded`],
  [
    `SELECT seq, status FROM events INDEXED BY events_lease WHERE status = 'processing' UNION ALL SELECT seq, status FROM events ORDER BY seq`,
  ],
  [`SELECT e.id, f.owner FROM events AS e LEFT JOIN effects AS f ON f.owner = e.id ORDER BY e.seq`],
  [`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i, (SELECT count(*) FROM guard) AS guards FROM n`],
  [`SELECT value FROM json_each('[1,2]') WHERE value NOT IN (SELECT place FROM effects)`],
  [`SELECT nonce FROM used_tickets WHERE EXISTS (SELECT 1 FROM state)`],
  [`SELECT owner, place FROM effects WHERE status = 'started' ORDER BY place`],
  [`SELECT g.id FROM guard AS g JOIN effects AS f ON f.owner = g.id`],
  [`SELECT column1 FROM (VALUES (1), (2)) WHERE column1 NOT IN (SELECT place FROM effects)`],
  [`SELECT group_concat(id) AS ids FROM guard`],
]
const FAILS = 'INSERT INTO trials (seq, reflex_id, version, action) VALUES (1, NULL, 1, 1)'

describe('tables that their first rows lay', () => {
  test('answer each statement as tables that are all there', () => {
    const step = fc.record({ picks: fc.array(fc.nat(STATEMENTS.length - 1), { minLength: 1, maxLength: 6 }), fails: fc.boolean() })
    assertProperty(
      'kernel/lazy-tables',
      fc.property(fc.array(step, { maxLength: 8 }), (steps) => {
        const [lazy, whole] = [openScopeStorage({ lazy: true }).database, openScopeStorage().database]
        for (const { picks, fails } of steps) {
          const [found, expected] = [lazy, whole].map((database) => {
            const rows: unknown[] = []
            const work = () => {
              for (const pick of picks) rows.push(database.all(...(STATEMENTS[pick] as [string])))
              if (fails) database.all(FAILS)
            }
            try {
              database.transaction(work)
            } catch (error) {
              rows.push(String(error))
            }
            return rows
          })
          expect(found).toEqual(expected)
        }
      }),
      { numRuns: 200 },
    )
  })

  test('are there once the table has a row, and not for what only reads, changes or deletes', () => {
    const { database, rowsOf } = openScopeStorage({ lazy: true })
    const tables = () => rowsOf(`SELECT name FROM sqlite_master WHERE type = 'table'`).map(({ name }) => name)
    database.all('SELECT count(*) FROM events')
    database.all(`UPDATE events SET status = 'x'`)
    database.all('DELETE FROM effects WHERE owner IN (SELECT id FROM events)')
    expect(tables()).toEqual([])
    database.write('a', 1)
    expect(tables()).toEqual(['state'])
  })

  test('are not asked for rows while none of those that a statement names is there', () => {
    const schema = new Schema(['CREATE TABLE `notes` (\n\t`id` text NOT NULL\n);\n', 'CREATE TABLE `states` (\n\t`id` text NOT NULL\n);\n'])
    const sql = { exec: () => ({ toArray: () => [{ name: 'states' }] }) } as unknown as SqlStorage
    const tables = new LazyTables(sql, schema)
    expect(tables.runnable('SELECT id FROM notes ORDER BY id')).toBeNull()
    for (const text of ['SELECT count(*) AS n FROM notes', 'SELECT id FROM states UNION SELECT id FROM notes', 'SELECT id FROM states'])
      expect(tables.runnable(text)).toContain(text)
  })

  test('are the same if they are laid whole as after each of their steps', () => {
    const steps = [
      'CREATE TABLE `notes` (\n\t`id` text NOT NULL,\n\t`at` integer NOT NULL,\n\tPRIMARY KEY(`id`, `at`)\n);\n',
      'CREATE INDEX `notes_at` ON `notes` (`at`);',
      "ALTER TABLE `notes` ADD `text` text DEFAULT 'a, b' NOT NULL;",
      'ALTER TABLE `notes` ADD `by` integer;',
    ]
    const [byStep, whole] = [new DatabaseSync(':memory:'), new DatabaseSync(':memory:')]
    for (const step of steps) byStep.exec(step)
    for (const statement of new Schema(steps).wholeOf('notes')) whole.exec(statement)
    const shapeOf = (database: DatabaseSync) =>
      ['table_info', 'index_list'].map((about) => database.prepare(`SELECT * FROM pragma_${about}('notes')`).all())
    expect(shapeOf(whole)).toEqual(shapeOf(byStep))
  })

  test('get the steps that were added since their scope was laid, and no others', () => {
    const { tables, database, rowsOf } = openScopeStorage({ lazy: true })
    database.write('a', 1)
    const columns = (table: string) => rowsOf(`SELECT name FROM pragma_table_info('${table}')`).map(({ name }) => name)
    rowsOf('CREATE TABLE `log` (`seq` integer PRIMARY KEY NOT NULL, `at` integer NOT NULL, `counts` text, `entries` text NOT NULL)')
    tables.laid = new Set([...tables.laid, 'log'])
    tables.migrate(tables.schema.length - 3)
    expect(columns('log')).toEqual(['seq', 'at', 'counts', 'entries', 'chain', 'head'])
    expect(columns('effects')).toEqual([])
  })

  test('get no step twice where a version from before it ran in between, and noted its own number of steps', () => {
    const { tables, database, rowsOf } = openScopeStorage({ lazy: true })
    database.all(...(STATEMENTS[0] as [string]))
    const made = () => rowsOf('SELECT name, sql FROM sqlite_master')
    const before = made()
    for (let done = tables.schema.length; done >= 0; done -= 1) tables.migrate(done)
    expect(made()).toEqual(before)
  })
})

describe('a schema', () => {
  test.each([['DROP TABLE events'], ['CREATE INDEX a ON other (b)'], ['UPDATE events SET id = 1']])(
    'refuses a step that creates no table and no part of one (%s)',
    (sql) => {
      expect(() => new Schema(['CREATE TABLE `events` (\n\t`id` text\n)', sql])).toThrow('step 1 of a schema must')
    },
  )
})
