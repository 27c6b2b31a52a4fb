import { DatabaseSync, type StatementSync } from 'node:sqlite'
import type { ReflexConfig } from '../config.ts'
import { createReflex as create, type StandaloneReflex } from '../reflex.ts'
import { SCHEMA, sqlLog, sqlRows, type StandaloneSql, type StandaloneRow, type LogStore } from '../rows.ts'
import { storageOver, type Storage } from '../storage.ts'
import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { warn } from '../../base/warn.ts'
import { decodeArchive, encodeArchive, idHash, type ArchiveLine, type EncodedFile } from '../../base/archive-file.ts'

/** Entries of days before the last `keep_days` are moved to files in `folder`. */
type LogArchiveConfig = { folder: string; keep_days?: number }

type LogArchiveOptions = LogArchiveConfig & { project: string; now?: () => number }
type File = { day: string; first_seq: number; last_seq: number; sha256: string }

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000
const FILE_ROWS = 1000
/** Files in one run: it delays the entry that is appended. */
const MOST_FILES = 8
const MOST_ENTRIES = 10_000

const ARCHIVE_SCHEMA = `CREATE TABLE IF NOT EXISTS reflex_archive (
  first_seq INTEGER PRIMARY KEY, last_seq INTEGER NOT NULL, day TEXT NOT NULL, sha256 TEXT NOT NULL, traces TEXT NOT NULL
)`

/**
 * A log that moves old entries to a folder, in the files of docs/archive.md. An entry is deleted in
 * the transaction that adds its file to the manifest, after the file is on disk. A process that
 * dies before writes the same file again: its name is the first `seq`.
 */
class ArchivedLog implements LogStore {
  readonly #sql: StandaloneSql
  readonly #live: LogStore
  readonly #options: LogArchiveOptions
  #due = 0

  constructor(sql: StandaloneSql, live: LogStore, options: LogArchiveOptions) {
    this.#sql = sql
    this.#live = live
    this.#options = options
    sql.all(ARCHIVE_SCHEMA)
    this.#archiveIfDue()
  }

  append(entry: Parameters<LogStore['append']>[0]): void {
    this.#live.append(entry)
    this.#archiveIfDue()
  }

  entries({ trace_id, after = 0, limit = MOST_ENTRIES }: Parameters<LogStore['entries']>[0] = {}): readonly StandaloneRow[] {
    const found: StandaloneRow[] = []
    const sql = `SELECT first_seq, last_seq, day, sha256 FROM reflex_archive
      WHERE last_seq > ?1 AND (?2 IS NULL OR instr(traces, ?2) > 0) ORDER BY first_seq`
    for (const file of this.#sql.all(sql, after, trace_id === undefined ? null : idHash(trace_id)) as File[]) {
      if (found.length >= limit) break
      const entries = this.#read(file)
      found.push(...entries.filter((entry) => entry.seq > after && (trace_id === undefined || entry.trace_id === trace_id)))
    }
    const left = limit - found.length
    if (left <= 0) return found.slice(0, limit)
    return [...found, ...this.#live.entries({ ...(trace_id !== undefined && { trace_id }), after, limit: left })]
  }

  last(): number {
    const [archived] = this.#sql.all('SELECT max(last_seq) AS seq FROM reflex_archive')
    return Math.max(this.#live.last(), Number(archived?.['seq'] ?? 0))
  }

  /** A failure is retried after a minute; until then nothing is deleted. */
  #archiveIfDue(): void {
    const { now = Date.now, folder, keep_days = 7 } = this.#options
    if (now() < this.#due) return
    this.#due = now() + HOUR_MS
    const first_kept = new Date(now() - keep_days * DAY_MS).toISOString().slice(0, 10)
    try {
      for (let count = 0; this.#archiveSome(first_kept); count += 1) if (count === MOST_FILES) return void (this.#due = now())
    } catch (error) {
      this.#due = now() + MINUTE_MS
      warn({ message: 'failed to archive the log; nothing was deleted; will retry', folder, error })
    }
  }

  /** Archives the oldest entries of one day. False if none is old enough. */
  #archiveSome(first_kept: string): boolean {
    const rows = this.#sql.all('SELECT seq, entry FROM reflex_log ORDER BY seq LIMIT ?', FILE_ROWS)
    const entries = rows.map(({ seq, entry }) => ({ ...(JSON.parse(String(entry)) as StandaloneRow), seq: Number(seq) }))
    const day = entries[0]?.at.slice(0, 10)
    if (day === undefined || day >= first_kept) return false
    const other = entries.findIndex(({ at }) => at.slice(0, 10) !== day)
    const old = other === -1 ? entries : entries.slice(0, other)
    const lines: ArchiveLine[] = old.map((entry) => ({ seq: entry.seq, text: JSON.stringify(entry) }))
    const first_seq = lines[0]?.seq ?? 0
    const last_seq = lines.at(-1)?.seq ?? 0
    const files = [...encodeArchive('log', this.#options.project, lines)]
    for (const { format, bytes } of files) writeDurably(this.#pathOf({ day, first_seq }, format), bytes)
    const sha256 = files.find(({ format }) => format === 'jsonl')?.sha256 ?? ''
    const traces = [...new Set(old.map(({ trace_id }) => idHash(trace_id)))].join('')
    this.#sql.atomic(() => {
      const insert = 'INSERT OR REPLACE INTO reflex_archive (first_seq, last_seq, day, sha256, traces) VALUES (?, ?, ?, ?, ?)'
      this.#sql.all(insert, first_seq, last_seq, day, sha256, traces)
      this.#sql.all('DELETE FROM reflex_log WHERE seq <= ?', last_seq)
    })
    return true
  }

  #read(file: File): StandaloneRow[] {
    const name = this.#pathOf(file, 'jsonl')
    const lines = decodeArchive(readFileSync(name), file.sha256)
    if (!lines) throw new Error(`the archive file ${name} is damaged: its hash is not the one in the manifest`)
    return lines.map((line) => JSON.parse(line) as StandaloneRow)
  }

  #pathOf({ day, first_seq }: Pick<File, 'day' | 'first_seq'>, format: EncodedFile['format']): string {
    const { folder, project } = this.#options
    const name = `${String(first_seq).padStart(12, '0')}.${format === 'jsonl' ? 'jsonl.gz' : 'parquet'}`
    return path.join(folder, 'log', `day=${day}`, encodeURIComponent(project).replaceAll('.', '%2E'), name)
  }
}

/** A reader sees the whole file or none. */
function writeDurably(file: string, bytes: Uint8Array): void {
  mkdirSync(path.dirname(file), { recursive: true })
  const temporary = `${file}.${process.pid}.tmp`
  const handle = openSync(temporary, 'w')
  try {
    writeFileSync(handle, bytes)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  renameSync(temporary, file)
}

const LOCAL = 'local://'

/** The file in a folder, which is made. A path to a file stays. */
function fileIn(place: string): string {
  if (place === '') throw new TypeError('local:// needs a folder: local://./.reflex')
  if (existsSync(place) && statSync(place).isFile()) return place
  mkdirSync(place, { recursive: true })
  return path.join(place, 'reflex.db')
}

/** `archive`: a folder for log entries that are older than its `keep_days`, by default 7. */
type FileConfig = { file: string; archive?: LogArchiveConfig }

/** As in `reflex-agents/wrap`; `{file}` and `local://FOLDER` keep one SQLite file. */
export function createReflex({
  storage: given = 'memory',
  ...config
}: Omit<ReflexConfig, 'storage'> & { storage?: ReflexConfig['storage'] | FileConfig | `${typeof LOCAL}${string}` }): StandaloneReflex {
  const { project, now } = config
  const storage = typeof given === 'string' && given.startsWith(LOCAL) ? { file: fileIn(given.slice(LOCAL.length)) } : given
  if (typeof storage === 'string' || !('file' in storage)) return create({ ...config, storage: storage as Storage | 'memory' })
  const archive = storage.archive && { ...storage.archive, project, ...(now && { now }) }
  return create({ ...config, storage: fileStorage(storage.file, archive) })
}

/** An SQLite file that survives a killed process. Log entries are not synced at once. */
export function fileStorage(file: string, archive?: ConstructorParameters<typeof ArchivedLog>[2]): Storage {
  const durable = opened(file, 'FULL')
  const log = opened(file, 'NORMAL')
  const live = sqlLog(sqlOf(log))
  return storageOver(sqlRows(sqlOf(durable)), archive ? new ArchivedLog(sqlOf(log), live, archive) : live, () => {
    log.close()
    durable.close()
  })
}

function opened(file: string, synchronous: 'FULL' | 'NORMAL'): DatabaseSync {
  const database = new DatabaseSync(file)
  database.exec(`PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; ${SCHEMA}`)
  return database
}

function sqlOf(database: DatabaseSync): StandaloneSql {
  const statements = new Map<string, StatementSync>()
  return {
    all(sql, ...values) {
      const statement = statements.get(sql) ?? database.prepare(sql)
      statements.set(sql, statement)
      return statement.all(...values)
    },
    atomic(work) {
      database.exec('BEGIN IMMEDIATE')
      try {
        const result = work()
        database.exec('COMMIT')
        return result
      } catch (error) {
        database.exec('ROLLBACK')
        throw error
      }
    },
  }
}
