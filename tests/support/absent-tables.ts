import { beforeAll } from 'vitest'
import { inObject, stubOf } from '../../testing/objects.ts'
import { LazyTables } from '../../src/kernel/lazy-tables.ts'

/*
 * A test that reads or breaks a scope's tables by hand finds those that have no row yet, too: empty
 * ones to read, and laid ones for a trigger.
 */
type Runnable = (this: LazyTables, text: string) => string | null
type Exec = (this: object, sql: string, ...bindings: unknown[]) => object

const tables = new WeakMap<object, LazyTables>()
let is_patched = false

beforeAll(async () => {
  if (is_patched) return
  is_patched = true
  const prototype: { runnable: Runnable } = LazyTables.prototype
  const { runnable } = prototype
  prototype.runnable = function (text) {
    tables.set(this.sql, this)
    return runnable.call(this, text)
  }
  await inObject(stubOf('test/tables'), ({ storage }) => answerAbsent(Object.getPrototypeOf(storage.sql) as { exec: Exec }))
})

function answerAbsent(prototype: { exec: Exec }): void {
  const { exec } = prototype
  prototype.exec = function (sql, ...bindings) {
    try {
      return exec.call(this, sql, ...bindings)
    } catch (error) {
      const [, absent] = /no such table: (?:main\.)?(\w+)/.exec(String(error)) ?? []
      const own = tables.get(this)
      if (absent === undefined || !own?.schema.has(absent)) throw error
      if (/^\s*CREATE/.test(sql)) own.lay(absent)
      const text = own.runnable(sql)
      return text === null ? exec.call(this, 'SELECT 1 WHERE false') : exec.call(this, text, ...bindings)
    }
  }
}
