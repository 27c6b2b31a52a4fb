import { hexHash } from './hash.ts'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import { gunzipSync, gzipSync } from 'node:zlib'

/** Version of the columns and of the lines. A reader refuses files of a later one. */
export const ARCHIVE_SCHEMA = 1

/** Scopes write them; packed events of all scopes are `packs`. */
export type ArchiveKind = 'log' | 'events' | 'parts'
type FileKind = ArchiveKind | 'packs'
/** A row as a line of JSON, and its position in the scope; parts of log entries have none. */
export type ArchiveLine = { seq: number; text: string }
/**
 * The link of a row of the log with the row before, beside its entries. `chain` is hexadecimal;
 * `splits` says where contexts begin. `leaves` has the hash of an entry whose text is another one
 * by now, null for others.
 */
export type ArchiveLink = {
  seq: number
  count: number
  chain: string | null
  head: string | null
  splits: (number | null)[]
  leaves: (string | null)[]
}
export type EncodedFile = { format: 'jsonl' | 'parquet' | 'chain'; bytes: Uint8Array; sha256: string }

type Fields = Record<string, unknown>
type Column = [name: string, type: keyof typeof TYPES, value: (row: Fields, line: ArchiveLine) => unknown]

/** `json` is written as text and declared as JSON once it is written; see `parquetOf`. */
const TYPES = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  json: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  time: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
  integer: { type: 'INT64' },
  number: { type: 'DOUBLE' },
} as const

/** Columns of long or distinct values: a dictionary and bounds would only cost time. */
const PLAIN = new Set(['id', 'trace_id', 'span_id', 'parent_id', 'entry', 'outcome', 'payload', 'hash', 'value'])

const text =
  (name: string) =>
  (row: Fields): unknown => {
    const value = row[name]
    return typeof value === 'string' ? value : null
  }
/** A text with digits may be larger than a number is exact. */
const integer =
  (name: string) =>
  (row: Fields): unknown => {
    const value = row[name]
    return Number.isSafeInteger(value) || (typeof value === 'string' && /^\d{1,19}$/.test(value)) ? BigInt(value as number | string) : null
  }
const time =
  (name: string) =>
  (row: Fields): unknown => {
    const ms = Date.parse(String(row[name]))
    return Number.isNaN(ms) ? null : ms
  }
const json =
  (name: string) =>
  (row: Fields): unknown =>
    row[name] === null || row[name] === undefined ? null : JSON.stringify(row[name])

const columnsOf = (scope: string): Record<FileKind, Column[]> => ({
  log: [
    ['at', 'time', time('at')],
    ['seq', 'integer', integer('seq')],
    ['scope', 'text', () => scope],
    ['kind', 'text', text('kind')],
    ['trace_id', 'text', text('trace_id')],
    ['span_id', 'text', text('span_id')],
    ['parent_id', 'text', text('parent_id')],
    ['duration_ms', 'number', ({ duration_ms }) => (typeof duration_ms === 'number' ? duration_ms : null)],
    ['entry', 'json', (_, line) => line.text],
  ],
  events: [
    ['seq', 'integer', integer('seq')],
    ['id', 'text', text('id')],
    ['scope', 'text', () => scope],
    ['type', 'text', text('type')],
    ['source', 'text', text('source')],
    ['timestamp', 'time', time('timestamp')],
    ['trace_id', 'text', text('trace_id')],
    ['accepted_at', 'time', time('accepted_at')],
    ['ended_at', 'time', time('ended_at')],
    ['status', 'text', text('status')],
    ['attempts', 'integer', integer('attempts')],
    ['error', 'text', text('error')],
    ['outcome', 'json', json('outcome')],
    ['payload', 'json', json('payload')],
  ],
  packs: [
    ['seq', 'integer', integer('seq')],
    ['id', 'text', text('id')],
    ['scope', 'text', text('scope')],
    ['type', 'text', text('type')],
    ['agent', 'text', text('agent')],
    ['trace_id', 'text', text('trace_id')],
    ['accepted_at', 'time', time('accepted_at')],
    ['ended_at', 'time', time('ended_at')],
    ['status', 'text', text('status')],
    ['attempts', 'integer', integer('attempts')],
    ['error', 'text', text('error')],
    ['revision', 'integer', integer('revision')],
    ['payload', 'json', json('payload')],
  ],
  parts: [
    ['hash', 'text', text('hash')],
    ['scope', 'text', () => scope],
    ['at', 'time', time('at')],
    ['value', 'json', json('value')],
  ],
})

/**
 * Encodes rows as JSONL, then as Parquet: between them, the caller may do other work. The same rows
 * give the same bytes.
 */
export function* encodeArchive(kind: FileKind, scope: string, lines: readonly ArchiveLine[]): Generator<EncodedFile> {
  yield encoded('jsonl', gzipSync(`${lines.map((line) => line.text).join('\n')}\n`, { level: 3 }))
  yield encoded('parquet', parquetOf(columnsOf(scope)[kind], lines))
}

export const encodeChain = (text: string): EncodedFile => encoded('chain', Buffer.from(text))

/**
 * Returns the links of a file's rows, or null if its bytes are not those that were written. An
 * earlier version wrote the links alone.
 */
export function decodeLinks(bytes: Uint8Array, sha256: string): ArchiveLink[] | null {
  if (hexHash(bytes) !== sha256) return null
  const value = JSON.parse(Buffer.from(bytes).toString()) as ArchiveLink[] | { links: ArchiveLink[] }
  return Array.isArray(value) ? value : value.links
}

/** Returns the lines of a JSONL file, or null if its bytes are not those that were written. */
export function decodeArchive(bytes: Uint8Array, sha256: string): string[] | null {
  if (hexHash(bytes) !== sha256) return null
  return gunzipSync(bytes).toString().trimEnd().split('\n')
}

function parquetOf(columns: readonly Column[], lines: readonly ArchiveLine[]): Uint8Array {
  const rows = lines.map((line) => ({ line, row: JSON.parse(line.text) as Fields }))
  const fields = columns.map(([name, type]) => ({ name, ...TYPES[type], repetition_type: 'OPTIONAL' as const }))
  const schema = [{ name: 'root', num_children: columns.length }, ...fields]
  const writer = new ByteWriter()
  const file = new ParquetWriter({
    writer,
    schema,
    codec: 'GZIP',
    compressors: { GZIP: (input) => gzipSync(input, { level: 1 }) },
    kvMetadata: [{ key: 'reflex.schema_version', value: String(ARCHIVE_SCHEMA) }],
  })
  const columnData = columns.map(([name, , value]) => ({
    name,
    data: rows.map(({ row, line }) => value(row, line)),
    ...(PLAIN.has(name) && { encoding: 'PLAIN' as const, statistics: false }),
  }))
  void file.write({ columnData, rowGroupSize: lines.length })
  // The writer would encode the texts of a JSON column a second time, so they become JSON last.
  for (const [index, [, type]] of columns.entries()) if (type === 'json') Object.assign(fields[index] ?? {}, { converted_type: 'JSON' })
  void file.finish()
  return writer.getBytes()
}

/** Hexadecimal digits of an id's hash in the manifest. */
const ID_DIGITS = 8
/** Finds the file of an event by its id. Two ids may have the same hash. */
export const idHash = (id: string): string => hexHash(id).slice(0, ID_DIGITS)

const encoded = (format: EncodedFile['format'], bytes: Uint8Array): EncodedFile => ({ format, bytes, sha256: hexHash(bytes) })
