import migrations from '../../../migrations/scope/migrations.js'
import type { SecretHider } from '../../base/secrets.ts'
import { hasTable } from '../../kernel/lay-tables.ts'
import { LazyTables, Schema } from '../../kernel/lazy-tables.ts'
import { Database } from '../../kernel/unit.ts'

const files = Object.values(migrations.migrations).map((text, place) => ({
  when: migrations.journal.entries[place]?.when ?? 0,
  steps: text.split('--> statement-breakpoint'),
}))
const scopeSchema = new Schema(files.flatMap(({ steps }) => steps))

/** The key of `state` with the number of the schema's steps that the scope's tables have run. */
const STEPS = 'schema'

/**
 * The database of a scope, which stays empty until the first insertion; `rows` of `state` are
 * written then.
 */
export function openDatabase(storage: DurableObjectStorage, rows: () => Record<string, unknown>, hider?: SecretHider): Database {
  const tables = scopeTables(storage)
  const laid = isLaid(tables)
  const lay = () => database.writeAll(Object.entries({ [STEPS]: scopeSchema.length, ...rows() }))
  const database = new Database(storage, { laid, lay, tables }, hider)
  if (laid) migrate(storage.sql, database, tables)
  return database
}

export const scopeTables = ({ sql }: DurableObjectStorage): LazyTables => new LazyTables(sql, scopeSchema)

/** True once the scope has its first row. */
export const isLaid = ({ laid }: LazyTables): boolean => laid.has('state')

/** Runs the steps that the tables of a scope have not run. */
function migrate(sql: SqlStorage, database: Database, tables: LazyTables): void {
  const done = database.read<number | null>(STEPS, null) ?? stepsOfMigrator(sql)
  // After a rollback, a newer version has run more.
  if (done >= scopeSchema.length) return
  database.transaction(() => {
    tables.migrate(done)
    database.write(STEPS, scopeSchema.length)
  })
}

/** Scopes of before had all tables, and a migrator's table of the files that it had run. */
function stepsOfMigrator(sql: SqlStorage): number {
  if (!hasTable(sql, '__drizzle_migrations')) return 0
  const until = Number(sql.exec('SELECT max(created_at) AS at FROM __drizzle_migrations').one()['at'])
  return files.filter(({ when }) => when <= until).flatMap(({ steps }) => steps).length
}
