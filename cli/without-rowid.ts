import { readFileSync, writeFileSync } from 'node:fs'

/**
 * Completes the generated migrations: a scope's tables whose key is not an integer, and D1's
 * tables of statistics and calls, are made WITHOUT ROWID, so that a row is one write and not two.
 * drizzle-kit cannot say that.
 */
const BREAK = '--> statement-breakpoint'

function complete(file: string, tables: RegExp): void {
  const changed = readFileSync(file, 'utf8')
    .split(BREAK)
    .map((statement) =>
      tables.test(statement) && /PRIMARY KEY/.test(statement) && !/integer PRIMARY KEY/i.test(statement)
        ? statement.replace(/\)(?: WITHOUT ROWID)?;(\s*)$/, ') WITHOUT ROWID;$1')
        : statement,
    )
  writeFileSync(file, changed.join(BREAK))
}

complete('migrations/scope/0000_start.sql', /^\s*CREATE TABLE/)
complete('migrations/0000_start.sql', /^\s*CREATE TABLE `(?:statistics|calls)/)
complete('migrations/0009_packed_statistics.sql', /^\s*CREATE TABLE `statistics_packs/)
