import { env } from 'cloudflare:workers'
import { inObject, stubOf } from './scopes.ts'

type Answer = { meta?: { rows_written?: number } }
type Method = (...args: unknown[]) => Promise<Answer | Answer[]>

/** Counts the billed rows that `work` writes to the scope's SQLite and D1, indexes included. */
export async function rowsWritten(scope: string, work: () => Promise<void>): Promise<{ scope: number; d1: number }> {
  const cursors: { rowsWritten: number }[] = []
  let d1 = 0
  const undo: (() => void)[] = []
  const count = (prototype: Record<string, Method>, name: string) => {
    const original = prototype[name]
    if (original === undefined) throw new Error(`D1 has no ${name}`)
    prototype[name] = async function (this: unknown, ...args) {
      const answer = await original.apply(this, args)
      for (const { meta } of [answer].flat()) d1 += meta?.rows_written ?? 0
      return answer
    }
    undo.push(() => (prototype[name] = original))
  }
  const prototypeOf = (value: unknown) => Object.getPrototypeOf(value) as Record<string, Method>
  for (const name of ['run', 'all']) count(prototypeOf(env.DB.prepare('SELECT 1')), name)
  count(prototypeOf(env.DB), 'batch')
  await inObject(stubOf(scope), ({ storage: { sql } }) => {
    const exec = sql.exec.bind(sql)
    sql.exec = ((query: string, ...bindings: unknown[]) => {
      const cursor = exec(query, ...bindings)
      cursors.push(cursor)
      return cursor
    }) as typeof sql.exec
    undo.push(() => (sql.exec = exec))
  })
  try {
    await work()
    return await inObject(stubOf(scope), () => ({ scope: cursors.reduce((sum, { rowsWritten: rows }) => sum + rows, 0), d1 }))
  } finally {
    for (const one of undo) one()
  }
}
