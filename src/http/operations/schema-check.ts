import { getTableColumns, getTableName, is } from 'drizzle-orm'
import { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { messageOf } from '../../base/error-text.ts'
import type { DeploymentFeature } from '../../events/deployment.ts'
import * as artifacts from '../../store/artifacts/tables.ts'
import * as others from '../../store/schema.ts'

const tablesIn = (schema: Readonly<Record<string, unknown>>): SQLiteTable[] =>
  Object.values(schema).filter((value): value is SQLiteTable => is(value, SQLiteTable))

type Found = { schema: 'fits' | 'unknown'; error: null } | { schema: 'outdated'; error: string }

/** SQLite's words for what a migration would add. Other errors say nothing about the tables. */
const LACKS = /no such (?:table|column)/

/** Compares D1 with this version's queries: where it does not fit, a migration is missing. */
export async function schemaOf(db: D1Database, features: readonly DeploymentFeature[]): Promise<Found> {
  const tables = [{ tables: { ...artifacts, ...others } }, ...features].flatMap((declared) => tablesIn(declared.tables ?? {}))
  try {
    // A single request to D1, whose error names the first that lacks.
    await db.batch(tables.map((table) => columnsOf(db, table)))
    return { schema: 'fits', error: null }
  } catch (thrown) {
    const error = messageOf(thrown)
    return LACKS.test(error) ? { schema: 'outdated', error } : { schema: 'unknown', error: null }
  }
}

/** The size of the database, which each answer of D1 tells; null without an answer. */
export async function databaseBytes(db: D1Database): Promise<number | null> {
  try {
    const { meta } = await db.prepare('SELECT 1').all()
    return Number.isFinite(meta.size_after) ? meta.size_after : null
  } catch {
    return null
  }
}

/** A query that names every column, and reads no row. */
function columnsOf(db: D1Database, table: SQLiteTable): D1PreparedStatement {
  const name = getTableName(table)
  // Without the table's name SQLite would take a missing column for a text.
  const columns = Object.values(getTableColumns(table)).map((column) => `"${name}"."${column.name}"`)
  return db.prepare(`SELECT ${columns.join(', ')} FROM "${name}" LIMIT 0`)
}
