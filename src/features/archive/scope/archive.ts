import { withDeadline } from '../../../base/deadline.ts'
import { iso } from '../../../base/time.ts'
import {
  ARCHIVE_SCHEMA,
  encodeArchive,
  encodeChain,
  idHash,
  type ArchiveKind,
  type EncodedFile,
  type ArchiveLine,
  type ArchiveLink,
} from '../../../base/archive-file.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import type { EventOutcomes } from '../../../engine/inbox/event-outcomes.ts'
import type { EventRow, ExpiredEvents } from '../../../engine/inbox/expired-events.ts'
import type { Archiving, Expired } from '../../../engine/log/past.ts'
import type { ExpiredEntries } from '../../../engine/log/expired-entries.ts'
import { cleanedJson, type Log } from '../../../engine/log/log.ts'
import type { LogParts } from '../../../engine/log/log-parts.ts'
import type { Database, Unit, UnitOfWork } from '../../../kernel/unit.ts'
import { together } from '../../../engine/upkeep/guard.ts'

/** Size of a file's rows as JSON, which bounds the time that encoding takes from the scope. */
const FILE_BYTES = 1_000_000
const MOST_ROWS = { limit: 1000, bytes: FILE_BYTES }
/** Maximum number of files in one run. */
const MOST_FILES = 8
const PUT_MS = 30_000

export type ArchiveBucket = Pick<R2Bucket, 'put' | 'get' | 'delete'>

type File = { number: number; kind: ArchiveKind; day: string }
/** A file that the bucket has, as in the manifest. */
export type StoredFile = File & { first_seq: number; last_seq: number; rows: number; files: string; archived_at: number }
/** The column `files`. Paths follow from the other columns. */
export type Formats = { format: EncodedFile['format']; bytes: number; sha256: string }[]
/**
 * `ids`: of events, of the log's traces, or hashes of parts. `remove` deletes the rows, and returns
 * false if they have changed.
 */
type Batch = { day: string; lines: ArchiveLine[]; links?: ArchiveLink[]; ids: string[]; remove: (unit: Unit) => boolean }
/** `batch` is null if the rows that a file was begun for have become current again. */
type Next = { file: File | null; kind: ArchiveKind; batch: Batch | null }

type ArchiveParts = {
  bucket: ArchiveBucket
  scope: string
  database: Database
  entries: ExpiredEntries
  events: ExpiredEvents
  log_parts: LogParts
  log: Pick<Log, 'clean'>
  outcomes: Pick<EventOutcomes, 'joined'>
  chainOf: NonNullable<ScopeFeature['chainFile']>
  /** Called in the unit that deletes rows of the log. */
  beforeLoss: (unit: Unit) => void
}

/**
 * Moves expired events and log entries to a bucket, each exactly once. The manifest has a row for a
 * file before the file is written, so a process that dies writes it again under the same name. Rows
 * are deleted in the transaction that completes the manifest, after both formats have arrived.
 */
export class Archive implements Archiving {
  readonly #parts: ArchiveParts
  #error: string | null = null

  constructor(parts: ArchiveParts) {
    this.#parts = parts
  }

  get lastError(): string | null {
    return this.#error
  }

  failed(error: string): void {
    this.#error = error
  }

  /** Returns true if expired rows are left. Throws if the bucket is unavailable. */
  async run(unit: UnitOfWork, expired: () => Expired): Promise<boolean> {
    for (let count = 0; count < MOST_FILES; count += 1) {
      const next = this.#next(expired())
      if (!next) {
        this.#error = null
        return false
      }
      await this.#store(unit, next)
    }
    this.#error = null
    return true
  }

  /** Events refer to the log, and the log to parts. */
  #next(expired: Expired): Next | null {
    for (const kind of ['events', 'log', 'parts'] as const) {
      const sql = 'SELECT number, kind, day FROM archive_files WHERE kind = ? AND archived_at IS NULL'
      const file = this.#parts.database.first<File>(sql, kind) ?? null
      const batch = this.#batch(kind, expired, file?.day ?? null)
      if (file || batch) return { file, kind, batch }
    }
    return null
  }

  /** A file that was begun keeps its day, which is in its name. */
  #batch(kind: ArchiveKind, expired: Expired, day: string | null): Batch | null {
    if (kind === 'log') return this.#entries(expired)
    return kind === 'events' ? this.#events(expired, day) : this.#logParts(expired, day)
  }

  #entries({ before, mark }: Expired): Batch | null {
    const { entries, beforeLoss } = this.#parts
    const old = entries.oldest({ before, last: mark }, FILE_BYTES)
    if (!old) return null
    const remove = (unit: Unit) => {
      beforeLoss(unit)
      entries.remove(unit, old.lines.at(-1)?.seq ?? 0)
      return true
    }
    return { ...old, ids: Array.from(new Set(old.lines.map(({ text }) => traceOf(text)))), remove }
  }

  #events({ before, kept, floor }: Expired, day: string | null): Batch | null {
    const { events, outcomes, log } = this.#parts
    const old = kept === null ? null : events.oldest({ before, kept, floor }, { ...MOST_ROWS, day })
    if (!old) return null
    const joined = outcomes.joined(old.rows.map(({ outcome }) => outcome))
    const lines = old.rows.map((row, index) => ({
      seq: row.seq,
      text: lineOf({ ...row, payload: cleanedJson(row.payload, log) }, joined[index] ?? null),
    }))
    return { day: old.day, lines, ids: old.rows.map(({ id }) => id), remove: (unit) => events.remove(unit, old.rows) }
  }

  #logParts({ before }: Expired, day: string | null): Batch | null {
    const { log_parts } = this.#parts
    const old = log_parts.oldest(before, { ...MOST_ROWS, day })
    if (!old) return null
    const lines = old.rows.map(({ hash, at, text }) => ({ seq: 0, text: `{"hash":"${hash}","at":"${iso(at)}","value":${text}}` }))
    const remove = (unit: Unit) => {
      log_parts.remove(unit, old.rows)
      return true
    }
    return { day: old.day, lines, ids: old.rows.map(({ hash }) => hash), remove }
  }

  async #store(unit: UnitOfWork, { file, kind, batch }: Next): Promise<void> {
    const { scope } = this.#parts
    if (!batch) return file ? this.#abandon(unit, file) : undefined
    const begun = file?.day === batch.day ? file : unit((open) => begin(open, kind, batch.day), together('retention'))
    if (file && begun !== file) await this.#abandon(unit, file)
    const formats: Formats = []
    const put = async (one: EncodedFile) => {
      await this.#put(pathOf(scope, begun, one.format), one, batch.lines)
      formats.push({ format: one.format, bytes: one.bytes.byteLength, sha256: one.sha256 })
    }
    for (const one of encodeArchive(kind, scope, batch.lines)) await put(one)
    const { links = [] } = batch
    if (links.some(({ chain }) => chain !== null)) {
      const sums = Object.fromEntries(formats.map(({ format, sha256 }) => [format, sha256]))
      const { at } = JSON.parse(batch.lines.at(-1)?.text ?? '{}') as { at: string }
      const chain = await this.#parts.chainOf(links, { files: sums, at: Date.parse(at) })
      if (chain !== null) await put(encodeChain(chain))
    }
    unit((open) => {
      if (batch.remove(open)) complete(open, begun, { ...batch, formats })
    }, together('retention'))
  }

  async #put(path: string, { bytes, sha256, format }: EncodedFile, lines: readonly ArchiveLine[]): Promise<void> {
    const customMetadata = {
      first_seq: String(lines[0]?.seq),
      last_seq: String(lines.at(-1)?.seq),
      rows: String(lines.length),
      schema_version: String(ARCHIVE_SCHEMA),
    }
    const httpMetadata = { contentType: CONTENT_TYPES[format] }
    // With the hash, the bucket refuses a file that arrives with other bytes.
    await inTime(() => this.#parts.bucket.put(path, bytes, { customMetadata, httpMetadata, sha256 }))
  }

  async #abandon(unit: UnitOfWork, file: File): Promise<void> {
    const { bucket, scope } = this.#parts
    await inTime(() => bucket.delete(FORMATS.map((format) => pathOf(scope, file, format))))
    unit((open) => void open.all('DELETE FROM archive_files WHERE number = ?', file.number), together('retention'))
  }
}

const FORMATS = ['jsonl', 'parquet', 'chain'] as const
const EXTENSIONS = { jsonl: 'jsonl.gz', parquet: 'parquet', chain: 'chain.json' }
const CONTENT_TYPES = { jsonl: 'application/gzip', parquet: 'application/vnd.apache.parquet', chain: 'application/json' }
const DIGITS = 8

/** By day, then by scope, whose special characters are escaped. Names of folders stay unique. */
export function pathOf(scope: string, { kind, day, number }: File, format: EncodedFile['format']): string {
  const folder = scope.replaceAll(/[^A-Za-z0-9._-]|^\.+$/g, (text) =>
    Array.from(text, (sign) => `~${sign.charCodeAt(0).toString(16)}`).join(''),
  )
  return `${kind}/day=${day}/${folder}/${String(number).padStart(DIGITS, '0')}.${EXTENSIONS[format]}`
}

const inTime = <Value>(work: () => Promise<Value>): Promise<Value> => withDeadline(work, { timeout_ms: PUT_MS, what: 'the archive' })

function begin(unit: Unit, kind: ArchiveKind, day: string): File {
  const row = unit.first<{ number: number }>('INSERT INTO archive_files (kind, day) VALUES (?, ?) RETURNING number', kind, day)
  if (!row) throw new Error('the manifest of the archive has no new row')
  return { number: row.number, kind, day }
}

function complete(unit: Unit, { number }: File, { lines, ids, formats }: Batch & { formats: Formats }): void {
  unit.allHidden(
    `UPDATE archive_files SET first_seq = ?2, last_seq = ?3, rows = ?4, files = ?5, ids = ?6, archived_at = ?7 WHERE number = ?1`,
    number,
    lines[0]?.seq ?? 0,
    lines.at(-1)?.seq ?? 0,
    lines.length,
    JSON.stringify(formats),
    ids.length === 0 ? null : ids.map(idHash).join(''),
    unit.now,
  )
}

/** Quotes within strings are escaped, so that the first match is the entry's own field. */
const traceOf = (text: string): string => /"trace_id":"([^"]*)"/.exec(text)?.[1] ?? ''

/** `accepted_at` and the like are ISO 8601, as in the API. */
function lineOf({ payload, accepted_at, ended_at, ...row }: EventRow, outcome: unknown): string {
  const head = { ...row, accepted_at: iso(accepted_at), ended_at: iso(ended_at), outcome }
  return `${JSON.stringify(head).slice(0, -1)},"payload":${payload}}`
}
