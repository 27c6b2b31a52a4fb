import { byteLength } from '../../../base/json.ts'
import { withDeadline } from '../../../base/deadline.ts'
import { messageOf } from '../../../base/error-text.ts'
import { limits } from '../../../base/limits.ts'
import type { Result } from '../../../base/result.ts'
import { iso } from '../../../base/time.ts'
import type { Event } from '../../../core/event.ts'
import type { EventRecord } from '../../../contract/event-record.ts'
import type { LogFilter, LogRead } from '../../../contract/scope-api.ts'
import type { ArchivedFile } from '../../../contract/scope.ts'
import { ARCHIVE_SCHEMA, decodeArchive, decodeLinks, idHash, type ArchiveKind } from '../../../base/archive-file.ts'
import { nextAfter, type Archived, type FoundRows, type LinkedFile, type WantedRows } from '../../../engine/log/past.ts'
import type { Log } from '../../../engine/log/log.ts'
import { entryFilter } from '../../../engine/log/search.ts'
import type { Database } from '../../../kernel/unit.ts'
import { pathOf, type ArchiveBucket, type Formats, type StoredFile } from './archive.ts'

const GET_MS = 10_000
/** Files read for one request. Only hashes that collide need more than one. */
const MOST_FILES = 3
const COLUMNS = 'number, kind, day, first_seq, last_seq, rows, files, archived_at'

/** Files read for one search. */
const MOST_SEARCHED = 16

type EventLine = Omit<EventRecord, 'event' | 'waiting'> & { id: string; payload: Event }

type ArchivedRowsParts = { bucket: ArchiveBucket | undefined; scope: string; database: Database; log: Log }

/** Reads what retention has moved to the archive. */
export class ArchivedRows implements Archived {
  readonly #parts: ArchivedRowsParts

  constructor(parts: ArchivedRowsParts) {
    this.#parts = parts
  }

  /** Reads one file at most: a page may be shorter than `limit`. */
  async log(after: number, limit: number, before: number, only: LogFilter): Promise<LogRead | null> {
    const { bucket, database, log } = this.#parts
    const { last } = log
    const sql = `SELECT ${COLUMNS} FROM archive_files WHERE kind = 'log' AND last_seq > ? AND first_seq < ? ORDER BY last_seq LIMIT 1`
    const file = bucket && database.first<StoredFile>(sql, after, before)
    if (!file) return null
    const read = await this.#read(file)
    if (!read.ok)
      return {
        entries: [],
        last_seq: last,
        next: file.last_seq,
        unavailable: `${read.detail}; ?after=${file.last_seq} reads the entries after it`,
      }
    const matches = entryFilter(only)
    const start = Math.max(0, after + 1 - file.first_seq)
    const entries: string[] = []
    let size = 0
    let reached = Math.max(after, file.first_seq - 1)
    for (const line of read.lines.slice(start, before - file.first_seq)) {
      if (size >= limits.page_bytes || entries.length >= limit) break
      reached += 1
      if (!matches(line)) continue
      size += byteLength(line)
      entries.push(log.shown(line))
    }
    return { entries, last_seq: last, next: nextAfter(reached, { last, before }) }
  }

  /** An event that retention has deleted. */
  async event(id: string): Promise<Result<{ record: EventRecord | null }>> {
    const { bucket, database } = this.#parts
    if (!bucket) return { ok: true, record: null }
    const sql = `SELECT ${COLUMNS} FROM archive_files WHERE kind = 'events' AND instr(ids, ?) > 0 ORDER BY number DESC LIMIT ?`
    for (const file of database.all<StoredFile>(sql, idHash(id), MOST_FILES)) {
      const read = await this.#read(file)
      if (!read.ok) return read
      const found = read.lines.map((line) => JSON.parse(line) as EventLine).find((line) => line.id === id)
      if (found) return { ok: true, record: recordOf(found) }
    }
    return { ok: true, record: null }
  }

  /**
   * Searches the files that name one of these ids, or have rows in these ranges of `seq`. Not
   * complete if a file cannot be read, or there are too many.
   */
  async search<Row>(kind: ArchiveKind, { ids, ranges = [] }: WantedRows, isWanted: (row: Row) => boolean): Promise<FoundRows<Row>> {
    const { bucket, database, log } = this.#parts
    if (!bucket || ids.length + ranges.length === 0) return { rows: [], complete: true }
    const sql = `SELECT ${COLUMNS} FROM archive_files WHERE kind = ?1 AND archived_at IS NOT NULL AND (
        EXISTS (SELECT 1 FROM json_each(?2) WHERE instr(ids, value) > 0) OR
        EXISTS (SELECT 1 FROM json_each(?3) WHERE first_seq <= value->>1 AND last_seq >= value->>0)) ORDER BY number LIMIT ?4`
    const files = database.all<StoredFile>(sql, kind, JSON.stringify(ids.map(idHash)), JSON.stringify(ranges), MOST_SEARCHED + 1)
    const found: FoundRows<Row> = { rows: [], complete: files.length <= MOST_SEARCHED }
    for (const file of files.slice(0, MOST_SEARCHED)) {
      const read = await this.#read(file)
      if (!read.ok) found.complete = false
      else found.rows.push(...read.lines.map((line) => JSON.parse(kind === 'log' ? log.shown(line) : line) as Row).filter(isWanted))
    }
    return found
  }

  /** Null, too, if a file cannot be read, or was written without links. */
  async linked(seq: number): Promise<LinkedFile | null> {
    const sql = `SELECT ${COLUMNS} FROM archive_files WHERE kind = 'log' AND last_seq >= ? ORDER BY last_seq LIMIT 1`
    const file = this.#parts.bucket && this.#parts.database.first<StoredFile>(sql, seq)
    const sha256 = file && formatsOf(file).find(({ format }) => format === 'chain')?.sha256
    if (!file || sha256 === undefined || file.first_seq > seq) return null
    const read = await this.#read(file)
    const bytes = await withDeadline(() => this.#bytes(pathOf(this.#parts.scope, file, 'chain')), {
      timeout_ms: GET_MS,
      what: 'the archive',
    }).catch(() => null)
    const links = bytes && decodeLinks(bytes, sha256)
    return read.ok && links ? { first_seq: file.first_seq, last_seq: file.last_seq, lines: read.lines, links } : null
  }

  /** The manifest, oldest file first. */
  files(after: number, limit: number): ArchivedFile[] {
    const sql = `SELECT ${COLUMNS} FROM archive_files WHERE archived_at IS NOT NULL AND number > ? ORDER BY number LIMIT ?`
    return this.#parts.database.all<StoredFile>(sql, after, limit).map((file) => ({
      ...file,
      schema_version: ARCHIVE_SCHEMA,
      files: formatsOf(file).map((one) => ({ ...one, path: pathOf(this.#parts.scope, file, one.format) })),
      archived_at: iso(file.archived_at),
    }))
  }

  get newest(): number {
    const sql = 'SELECT number FROM archive_files WHERE archived_at IS NOT NULL ORDER BY number DESC LIMIT 1'
    return this.#parts.database.first<{ number: number }>(sql)?.number ?? 0
  }

  async #read(file: StoredFile): Promise<Result<{ lines: string[] }>> {
    const path = pathOf(this.#parts.scope, file, 'jsonl')
    const failed = (why: string) => ({ ok: false, detail: `the archive file ${path} ${why}` }) as const
    try {
      const bytes = await withDeadline(() => this.#bytes(path), { timeout_ms: GET_MS, what: 'the archive' })
      if (!bytes) return failed('is missing')
      const lines = decodeArchive(bytes, formatsOf(file).find(({ format }) => format === 'jsonl')?.sha256 ?? '')
      return lines ? { ok: true, lines } : failed('is damaged: its hash is not the one in the manifest')
    } catch (error) {
      return failed(`cannot be read: ${messageOf(error)}`)
    }
  }

  async #bytes(path: string): Promise<Uint8Array | null> {
    const object = await this.#parts.bucket?.get(path)
    return object ? new Uint8Array(await object.arrayBuffer()) : null
  }
}

const formatsOf = ({ files }: StoredFile): Formats => JSON.parse(files) as Formats

const recordOf = ({ payload, status, attempts, error, outcome, accepted_at, ended_at }: EventLine): EventRecord => ({
  event: payload,
  status,
  attempts,
  error,
  outcome,
  waiting: null,
  accepted_at,
  ended_at,
})
