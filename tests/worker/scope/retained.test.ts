import { describe, expect, test } from 'vitest'
import { evict, freshScope, inObject, note, sendAndSettle, stubOf } from '../../support/scopes.ts'

type Cursor = { rowsRead: number }
type Exec = (this: object, sql: string, ...bindings: unknown[]) => Cursor

const COPIES = `WITH RECURSIVE places (place) AS (SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < ?)
  INSERT INTO events (seq, id, scope, type, source, timestamp, trace_id, payload, status, accepted_at, ended_at, in_context)
  SELECT -place, id || place, scope, type, source, timestamp, trace_id, payload, status, accepted_at, ended_at, 0
  FROM events CROSS JOIN places WHERE seq = 1`

/** The rows that a scope reads to wake which keeps so many events with an outcome. */
async function rowsOfWake(retained: number): Promise<number> {
  const scope = freshScope()
  const [ended] = await sendAndSettle(stubOf(scope), note(scope, 'the first one'))
  expect(ended?.status).toBe('completed')
  const cursors: Cursor[] = []
  const undo = await inObject(stubOf(scope), ({ storage: { sql } }) => {
    sql.exec(COPIES, retained)
    const prototype = Object.getPrototypeOf(sql) as { exec: Exec }
    const { exec } = prototype
    prototype.exec = function (text, ...bindings) {
      const cursor = exec.call(this, text, ...bindings)
      cursors.push(cursor)
      return cursor
    }
    return () => void (prototype.exec = exec)
  })
  try {
    await evict(stubOf(scope))
    await inObject(stubOf(scope), () => {})
    return cursors.reduce((sum, { rowsRead }) => sum + rowsRead, 0)
  } finally {
    undo()
  }
}

describe('a scope that wakes', () => {
  test('reads as many rows with thousands of retained events as with few', async () => {
    const few = await rowsOfWake(10)
    expect(few).toBeGreaterThan(0)
    expect(await rowsOfWake(5000)).toBeLessThanOrEqual(few + 10)
  })
})
