import { drizzle } from 'drizzle-orm/durable-sqlite'
import { migrate } from 'drizzle-orm/durable-sqlite/migrator'
import migrations from '../../../migrations/scope/migrations.js'
import { logError } from '../../base/warn.ts'
import { hasTable } from '../../kernel/lay-tables.ts'

export const isLaid = ({ sql }: DurableObjectStorage): boolean => hasTable(sql, 'state')

/**
 * Migrates the schema. Drizzle's migrator is asynchronous in its type only, so the tables are
 * checked.
 */
export function laySchema(storage: DurableObjectStorage): void {
  migrate(drizzle(storage), migrations).catch((error: unknown) => {
    logError({ message: 'the migrations of a scope failed', error })
  })
  const newest = migrations.journal.entries.at(-1)?.when ?? 0
  if (appliedUntil(storage) < newest) throw new Error('a migration of the scope failed; the log says why')
}

function appliedUntil({ sql }: DurableObjectStorage): number {
  if (!hasTable(sql, '__drizzle_migrations')) return 0
  return Number(sql.exec('SELECT max(created_at) AS at FROM __drizzle_migrations').one()['at'])
}
