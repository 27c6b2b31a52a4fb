/**
 * Runs the steps of a schema that the object has not run yet. A step is never changed once a
 * deployment may have run it: a change is a further step.
 */
export function layTables(sql: SqlStorage, name: string, steps: readonly string[]): void {
  sql.exec('CREATE TABLE IF NOT EXISTS laid (name TEXT PRIMARY KEY, steps INTEGER NOT NULL) WITHOUT ROWID')
  const [row] = sql.exec<{ steps: number }>('SELECT steps FROM laid WHERE name = ?', name).toArray()
  const done = row?.steps ?? 0
  for (const step of steps.slice(done)) sql.exec(step)
  if (done < steps.length) sql.exec('INSERT OR REPLACE INTO laid (name, steps) VALUES (?, ?)', name, steps.length)
}

export const hasTable = (sql: SqlStorage, name: string): boolean =>
  sql.exec(`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?`, name).toArray().length > 0
