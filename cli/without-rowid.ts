import { readFileSync, writeFileSync } from 'node:fs'

/**
 * Completes the scope's generated migrations: a table whose key is not an integer is made WITHOUT
 * ROWID, so that a row is one write and not two. drizzle-kit cannot say that.
 */
const FILE = 'migrations/scope/0000_start.sql'
const BREAK = '--> statement-breakpoint'

const statements = readFileSync(FILE, 'utf8').split(BREAK)
const changed = statements.map((statement) =>
  /^\s*CREATE TABLE/.test(statement) && /PRIMARY KEY/.test(statement) && !/integer PRIMARY KEY/i.test(statement)
    ? statement.replace(/\)(?: WITHOUT ROWID)?;(\s*)$/, ') WITHOUT ROWID;$1')
    : statement,
)
writeFileSync(FILE, changed.join(BREAK))
