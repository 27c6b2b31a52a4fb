import { getTableColumns, getTableName, is } from 'drizzle-orm'
import { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { messageOf } from '../../base/error-text.ts'
import * as control_plane from '../../store/artifacts/control-plane-tables.ts'
import * as artifacts from '../../store/artifacts/tables.ts'
import * as others from '../../store/schema.ts'

const schema = { ...artifacts, ...control_plane, ...others }

/** Returns why D1 does not fit this version's queries, or null: a migration may be missing. */
export async function schemaError(db: D1Database): Promise<string | null> {
  const tables = Object.values(schema).filter((value) => is(value, SQLiteTable))
  const errors = await Promise.all(tables.map((table) => columnsError(db, table)))
  return errors.find((error) => error !== null) ?? null
}

/** Runs a query that names every column, and reads no row. */
async function columnsError(db: D1Database, table: (typeof schema)[keyof typeof schema]): Promise<string | null> {
  const name = getTableName(table)
  // Without the table's name SQLite would take a missing column for a text.
  const columns = Object.values(getTableColumns(table)).map((column) => `"${name}"."${column.name}"`)
  try {
    await db.prepare(`SELECT ${columns.join(', ')} FROM "${name}" LIMIT 0`).all()
    return null
  } catch (error) {
    return `the table ${name}: ${messageOf(error)}`
  }
}
