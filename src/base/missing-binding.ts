import { messagesOf } from './faults.ts'

/** Says which bindings a deployment lacks, and what its operator does about it. */
export const missingText = (names: readonly string[]): string =>
  `the binding ${names.join(' and ')} is missing: add it to wrangler.toml, and deploy again; reflex doctor checks all bindings`

const NAMED = /the binding \S+(?: and \S+)* is missing: .+/

/** Says which binding a failed call has missed, if the error, or a cause of it, says so. */
export function missingIn(error: unknown): string | null {
  for (const message of messagesOf(error)) {
    const [named] = NAMED.exec(message) ?? []
    if (named !== undefined) return named
  }
  return null
}

/** In place of a database that is not bound: each use says so. */
export function missingDatabase(name: string): D1Database {
  const fail = (): never => {
    throw new Error(missingText([name]))
  }
  const absent: Pick<D1Database, 'prepare' | 'batch' | 'exec'> = { prepare: fail, batch: fail, exec: fail }
  return absent as D1Database
}
