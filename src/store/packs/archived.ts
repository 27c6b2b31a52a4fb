import { Buffer } from 'node:buffer'
import { messageOf } from '../../base/error-text.ts'
import { withDeadline } from '../../base/deadline.ts'
import { iso, isoOrNull, isoDay } from '../../base/time.ts'
import { warn } from '../../base/warn.ts'
import { ARCHIVE_SCHEMA, decodeArchive, encodeArchive } from '../../base/archive-file.ts'
import { PackDamaged, type PackedEvent } from './format.ts'
import { seqAt, withoutRow } from '../queued.ts'
import { archiveOf, type PackDatabase } from '../store.ts'
import type { Leaving } from './merge.ts'
import { askPacks, DAY_MS, dayOf, eachOnce, inOrder, namesIn, readPacks } from './rows.ts'

/** The archive's name beside names of databases, in what a list lacks. */
export const ARCHIVE = 'ARCHIVE'
const PUT_MS = 30_000
const GET_MS = 10_000
const DIGITS = 19

/** A file of packed events of one day, by what its metadata say. `key` is without the format. */
export type ArchivedPack = {
  key: string
  first: bigint
  last: bigint
  events: number
  bytes: number
  raw_bytes: number
  sha256: string
  /** Null if they are many. */
  scopes: string[] | null
  types: string[] | null
}

const inTime = <Value>(work: () => Promise<Value>, timeout_ms: number) => withDeadline(work, { timeout_ms, what: 'the archive' })

export const dayName = (day: number): string => isoDay(day * DAY_MS)
const folderOf = (day: number): string => `packs/day=${dayName(day)}/`

/** Metadata are short, and ASCII; nothing means that names may be any. */
const MOST_NAMES = 400
const names = (list: string | null): string => (list !== null && list.length <= MOST_NAMES && /^[ -~]*$/.test(list) ? list : '')

/**
 * Writes events of one day to the archive, as JSONL and as Parquet, and then the day to D1, where
 * lists look for it. The same events have the same files: a move that died is made again.
 */
async function archiveEvents(store: D1Database, bucket: R2Bucket, events: readonly PackedEvent[]): Promise<void> {
  const sorted = events.toSorted(inOrder)
  const [first, last] = [sorted[0], sorted.at(-1)]
  if (!first || !last) return
  const lines = sorted.map((event) => ({ seq: 0, text: lineOf(event) }))
  const [jsonl, parquet] = encodeArchive('packs', '', lines)
  if (!jsonl || !parquet) throw new TypeError('the events have no file')
  const key = `${folderOf(dayOf(first.seq))}${String(first.seq).padStart(DIGITS, '0')}-${jsonl.sha256.slice(0, 16)}`
  const customMetadata = {
    last: String(last.seq),
    events: String(sorted.length),
    raw_bytes: String(lines.reduce((sum, { text }) => sum + text.length, 0)),
    sha256: jsonl.sha256,
    schema_version: String(ARCHIVE_SCHEMA),
    scopes: names(namesIn(sorted, 'scope')),
    types: names(namesIn(sorted, 'type')),
  }
  // Parquet first: a list finds the events by the other file.
  for (const { bytes, sha256, format } of [parquet, jsonl]) {
    const path = `${key}.${format === 'jsonl' ? 'jsonl.gz' : format}`
    await inTime(() => bucket.put(path, bytes, { sha256, customMetadata }), PUT_MS)
  }
  await store.prepare('INSERT INTO archived_days (day) VALUES (?1) ON CONFLICT (day) DO NOTHING').bind(dayOf(first.seq)).run()
}

/** The same for events of any days. */
export async function archiveDays(store: D1Database, bucket: R2Bucket, events: readonly PackedEvent[]): Promise<void> {
  for (const some of Map.groupBy(events, ({ seq }) => dayOf(seq)).values()) await archiveEvents(store, bucket, some)
}

/** A file of the archive has so many packs, which are of about 256 events. */
const MOST_IN_FILE = 8

/** Moves packs of a database to the archive, before they are deleted. Rows of `events` stay. */
export const leavingFor =
  (store: D1Database, bucket: R2Bucket, { name, db }: PackDatabase): Leaving =>
  async (ids) => {
    for (let from = 0; from < ids.length; from += MOST_IN_FILE) {
      const damaged = new Set<string>()
      const packs = await readPacks(db, ids.slice(from, from + MOST_IN_FILE), { damaged })
      for (const id of damaged) await archiveBytes(bucket, db, { name, id })
      await archiveDays(store, bucket, await withoutRow(store, eachOnce(Array.from(packs.values()).flat())))
    }
  }

/** Keeps the bytes of a pack that cannot be read. */
async function archiveBytes(bucket: R2Bucket, db: D1Database, { name, id }: { name: string; id: string }): Promise<void> {
  const data = await db.prepare('SELECT hex(data) AS data FROM packs WHERE id = CAST(?1 AS INTEGER)').bind(id).first<string>('data')
  if (data !== null) await inTime(() => bucket.put(`packs/damaged/${name}-${id}`, Buffer.from(data, 'hex')), PUT_MS)
}

/** The nearest day between these, which are among them, that has files. */
export async function nextDay(store: D1Database, { least, most, rising }: { least: number; most: number; rising: boolean }) {
  const sql = `SELECT ${rising ? 'min' : 'max'}(day) AS day FROM archived_days WHERE day >= ?1 AND day <= ?2`
  return store.prepare(sql).bind(least, most).first<number | null>('day')
}

/** An event is filed about when its id or its trace was made. */
const AROUND_MS = 60_000
/** Files that a look-up reads at most. */
const MOST_LOOKED_AT = 8

/** The time in a UUID of version 7, with dashes or without, in ms; null for another text. */
export function timeOf(id: string): number | null {
  const digits = id.replaceAll('-', '')
  return /^[\da-f]{12}7[\da-f]{19}$/i.test(digits) ? Number.parseInt(digits.slice(0, 12), 16) : null
}

/**
 * The archived events about the time in this id, of an event or a trace: the others are found by a
 * list over their day. `missing` takes the archive's name if it does not answer.
 */
export async function archivedNear(
  store: D1Database,
  id: string,
  { isWanted, missing }: { isWanted: (event: PackedEvent) => boolean; missing: Set<string> | undefined },
): Promise<PackedEvent[]> {
  const [bucket, time] = [archiveOf(store), timeOf(id)]
  if (!bucket || time === null) return []
  const [after, before] = [BigInt(seqAt(time - AROUND_MS)), BigInt(seqAt(time + AROUND_MS))]
  const files: ArchivedPack[] = []
  for (const day of new Set([dayOf(after), dayOf(before)])) {
    if ((await nextDay(store, { least: day, most: day, rising: true })) === null) continue
    files.push(...((await askPacks({ name: ARCHIVE, db: store }, missing, () => filesOf(bucket, day))) ?? []))
  }
  const near = files.filter(({ first, last }) => last >= after && first < before).slice(0, MOST_LOOKED_AT)
  return eachOnce(Array.from((await readArchived(bucket, near, { isWanted, missing })).values()).flat())
}

/** The files of a day. */
export async function filesOf(bucket: R2Bucket, day: number): Promise<ArchivedPack[]> {
  const files: ArchivedPack[] = []
  for (let cursor: string | undefined; ;) {
    const options = { prefix: folderOf(day), include: ['customMetadata' as const], ...(cursor !== undefined && { cursor }) }
    const found = await inTime(() => bucket.list(options), GET_MS)
    for (const object of found.objects) if (object.key.endsWith('.jsonl.gz')) files.push(fileOf(object))
    if (!found.truncated) return files
    cursor = found.cursor
  }
}

function fileOf({ key, size, customMetadata = {} }: R2Object): ArchivedPack {
  const list = (name: string) => (customMetadata[name] ? (JSON.parse(customMetadata[name]) as string[]) : null)
  const number = (name: string) => Number(customMetadata[name] ?? 0)
  const name = key.slice(0, -'.jsonl.gz'.length)
  return {
    key: name,
    first: BigInt(name.slice(name.lastIndexOf('/') + 1).split('-')[0] ?? ''),
    last: BigInt(customMetadata['last'] ?? ''),
    events: number('events'),
    bytes: size,
    raw_bytes: number('raw_bytes'),
    sha256: customMetadata['sha256'] ?? '',
    scopes: list('scopes'),
    types: list('types'),
  }
}

/** The events of a file; undefined if it is gone. Throws `PackDamaged` for other bytes. */
async function archivedEvents(bucket: R2Bucket, { key, sha256 }: ArchivedPack): Promise<PackedEvent[] | undefined> {
  const object = await inTime(() => bucket.get(`${key}.jsonl.gz`), GET_MS)
  if (!object) return undefined
  const lines = decodeArchive(new Uint8Array(await inTime(() => object.arrayBuffer(), GET_MS)), sha256)
  if (!lines) throw new PackDamaged(`The file ${key}.jsonl.gz of the archive has other bytes than were written.`)
  return lines.map(eventOf)
}

/** Reads files for a list. `missing` and `damaged` take the names of what it lacks, if given. */
export async function readArchived(
  bucket: R2Bucket,
  files: readonly ArchivedPack[],
  {
    isWanted,
    missing,
    damaged,
  }: { isWanted: (event: PackedEvent) => boolean; missing?: Set<string> | undefined; damaged?: Set<string> | undefined },
): Promise<Map<string, PackedEvent[]>> {
  const read = files.map(async (file): Promise<[string, PackedEvent[]][]> => {
    try {
      const events = await archivedEvents(bucket, file)
      return events ? [[`${ARCHIVE} ${file.key}`, events.filter(isWanted)]] : []
    } catch (error) {
      const lacks = error instanceof PackDamaged ? damaged : missing
      if (!lacks) throw error
      lacks.add(error instanceof PackDamaged ? `${ARCHIVE} ${file.key}` : ARCHIVE)
      warn({ message: 'a file of packed events in the archive is left out', file: file.key, error: messageOf(error) })
      return [[`${ARCHIVE} ${file.key}`, []]]
    }
  })
  return new Map((await Promise.all(read)).flat())
}

type Line = Omit<PackedEvent, 'seq' | 'accepted_at' | 'ended_at'> & { seq: string; accepted_at: string; ended_at: string | null }

const lineOf = ({ seq, accepted_at, ended_at, payload, ...event }: PackedEvent): string => {
  const line: Line = { seq: String(seq), ...event, accepted_at: iso(accepted_at), ended_at: isoOrNull(ended_at), payload }
  return JSON.stringify(line)
}

function eventOf(text: string): PackedEvent {
  const { seq, accepted_at, ended_at, ...event } = JSON.parse(text) as Line
  return { ...event, seq: BigInt(seq), accepted_at: Date.parse(accepted_at), ended_at: ended_at === null ? null : Date.parse(ended_at) }
}
