import { env } from 'cloudflare:workers'
import { afterAll, beforeAll } from 'vitest'
import { inObject, stubOf } from '../../testing/objects.ts'
import { refusalOf, shapeOf, type Step } from './scans.ts'

/*
 * Reads the plan of each statement of `src/` that a test runs, in D1 and in every object, and
 * refuses one that scans a table which grows.
 */
type Exec = (this: object, sql: string, ...bindings: unknown[]) => { toArray: () => Step[] }
type Prepare = (this: object, sql: string) => D1PreparedStatement

const PLANNED = /^\s*(?:SELECT|WITH|UPDATE|DELETE|INSERT)\b/i
/** Reads an empty table in place of one that is not laid. */
const SHADOWED = /AS \(SELECT NULL\b[^)]* WHERE false\)/
/** Files of one process share its modules: a statement is planned once. Texts, then shapes. */
const seen = new Set<string>()
const planned = new Set<string>()
/** Statements of D1 whose plans are read after the tests. */
const waiting = new Set<string>()
const refused: string[] = []

/** True for a statement of `src/`, and not for one of a test. */
const isOurs = (): boolean => /\/src\//.test((new Error('callers').stack ?? '').replaceAll(/node_modules\S*/g, ''))

function isNew(kind: string, sql: string): boolean {
  const text = `${kind} ${sql}`
  if (seen.has(text) || SHADOWED.test(sql)) return false
  const shape = `${kind} ${shapeOf(sql)}`
  const is_known = !PLANNED.test(sql) || planned.has(shape)
  if (!is_known && !isOurs()) return false
  seen.add(text)
  planned.add(shape)
  return !is_known
}

function watchObjects(prototype: { exec: Exec }): void {
  const { exec } = prototype
  prototype.exec = function (sql, ...bindings) {
    if (isNew('object', sql)) judge(sql, exec.call(this, `EXPLAIN QUERY PLAN ${sql}`, ...bindings).toArray())
    return exec.call(this, sql, ...bindings)
  }
}

function watchDatabase(prototype: { prepare: Prepare }): void {
  const { prepare } = prototype
  prototype.prepare = function (sql) {
    if (isNew('D1', sql)) waiting.add(sql)
    return prepare.call(this, sql)
  }
}

function judge(sql: string, steps: readonly Step[]): void {
  const refusal = refusalOf(sql, steps)
  if (refusal !== null) refused.push(refusal)
}

async function planOf(sql: string): Promise<Step[]> {
  const places = Array.from(sql.matchAll(/\?(\d*)/g), ([, place], index) => Number(place) || index + 1)
  const nulls = Array.from({ length: Math.max(0, ...places) }, () => null)
  const explained = env.DB.prepare(`EXPLAIN QUERY PLAN ${sql}`).bind(...nulls)
  return (await explained.all<Step>()).results
}

let is_watching = false

beforeAll(async () => {
  if (is_watching) return
  is_watching = true
  watchDatabase(Object.getPrototypeOf(env.DB) as { prepare: Prepare })
  await inObject(stubOf('test/plans'), ({ storage }) => watchObjects(Object.getPrototypeOf(storage.sql) as { exec: Exec }))
})

afterAll(async () => {
  for (const sql of waiting) judge(sql, await planOf(sql))
  waiting.clear()
  const found = refused.splice(0)
  if (found.length > 0)
    throw new Error(`statements scan what grows; give them an index, or a reason in tests/support/scans.ts:\n${found.join('\n')}`)
})
