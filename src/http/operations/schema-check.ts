import { getTableColumns, getTableName, is } from 'drizzle-orm'
import { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { messageOf } from '../../base/error-text.ts'
import * as control_plane from '../../store/artifacts/control-plane-tables.ts'
import * as artifacts from '../../store/artifacts/tables.ts'
import * as others from '../../store/schema.ts'

const schema = { ...artifacts, ...control_plane, ...others }

const tables = Object.values(schema).filter((value) => is(value, SQLiteTable))

/** Returns why D1 does not fit this version's queries, or null: a migration may be missing. */
export async function schemaError(db: D1Database): Promise<string | null> {
  try {
    // One request to D1; only if it fails, each table is asked for, to name the one that is wrong.
    await db.batch(tables.map((table) => columnsOf(db, table)))
    return null
  } catch {
    const errors = await Promise.all(tables.map((table) => columnsError(db, table)))
    return errors.find((error) => error !== null) ?? null
  }
}

type Table = (typeof tables)[number]

/** A query that names every column, and reads no row. */
function columnsOf(db: D1Database, table: Table): D1PreparedStatement {
  const name = getTableName(table)
  // Without the table's name SQLite would take a missing column for a text.
  const columns = Object.values(getTableColumns(table)).map((column) => `"${name}"."${column.name}"`)
  return db.prepare(`SELECT ${columns.join(', ')} FROM "${name}" LIMIT 0`)
}

async function columnsError(db: D1Database, table: Table): Promise<string | null> {
  try {
    await columnsOf(db, table).all()
    return null
  } catch (error) {
    return `the table ${getTableName(table)}: ${messageOf(error)}`
  }
}
