import { Buffer } from 'node:buffer'
import { isoDay } from '../../base/time.ts'
import type { ArchiveLink } from '../../base/archive-file.ts'
import type { Database, Unit } from '../../kernel/unit.ts'
import { type Log, type LogRow, linesOf, textOf } from './log.ts'

/** `last`: no row with an entry after this `seq` is deleted, because D1 needs it. */
type Expiry = { before: number; last: number }
type OldEntries = { day: string; lines: { seq: number; text: string }[]; links: ArchiveLink[] }
type StoredRow = LogRow & { at: number; chain: ArrayBuffer | null; head: string | null }

/** The key of the state that has the link of the newest row that was deleted, as hexadecimal. */
export const CHAIN_FLOOR = 'chain_floor'

/** The old end of the log, which retention deletes. */
export class ExpiredEntries {
  readonly #database: Database
  readonly #log: Log

  constructor({ database, log }: { database: Database; log: Log }) {
    this.#database = database
    this.#log = log
  }

  /** The oldest expired rows of one day, up to `bytes` of text. Null if there are none. */
  oldest({ before, last }: Expiry, bytes: number): OldEntries | null {
    const found: OldEntries = { day: '', lines: [], links: [] }
    let size = 0
    for (const row of this.#database.each<StoredRow>('SELECT seq, at, entries, chain, head FROM log ORDER BY seq')) {
      const day = isoDay(row.at)
      found.day ||= day
      if (row.at >= before || day !== found.day || size >= bytes) break
      const stored = linesOf(row.entries)
      if (row.seq + stored.lines.length - 1 > last) break
      const texts = stored.lines.map((line) => textOf(line, stored))
      const shown = texts.map(({ text }) => this.#log.shown(text))
      size += texts.reduce((sum, { text }) => sum + text.length, 0)
      found.lines.push(...shown.map((text, index) => ({ seq: row.seq + index, text })))
      found.links.push(this.#linkOf(row, texts, shown))
    }
    return found.lines.length === 0 ? null : found
  }

  #linkOf({ seq, chain, head }: StoredRow, texts: ReturnType<typeof textOf>[], shown: readonly string[]): ArchiveLink {
    const changed = texts.map(({ text }, index) => text !== shown[index])
    const leaves = chain && changed.includes(true) ? this.#log.leavesOf(chain, texts) : []
    return {
      seq,
      count: texts.length,
      chain: chain && Buffer.from(chain).toString('hex'),
      head,
      splits: texts.map(({ split }) => split),
      leaves: changed.map((is_changed, index) => (is_changed ? (leaves[index] ?? null) : null)),
    }
  }

  /** Deletes all rows up to the entry `last`, which ends a row. */
  remove(unit: Unit, last: number): void {
    unit.write('log_floor', this.#log.last)
    keepFloor(unit, unit.all<DeletedRow>('DELETE FROM log WHERE seq <= ? RETURNING seq, chain', last))
  }

  /** Deletes up to `limit` expired rows. */
  forget(unit: Unit, { before, last }: Expiry, limit: number): number {
    this.#log.write()
    unit.write('log_floor', this.#log.last)
    const row_of = 'SELECT max(seq) AS seq FROM log WHERE seq <= ?'
    const kept_from = last < this.#log.last ? (unit.first<{ seq: number | null }>(row_of, last + 1)?.seq ?? 0) : Number.MAX_SAFE_INTEGER
    const old = 'DELETE FROM log WHERE seq IN (SELECT seq FROM log ORDER BY seq LIMIT ?2) AND seq < ?3 AND at < ?1 RETURNING seq, chain'
    const gone = unit.all<DeletedRow>(old, before, limit, kept_from)
    keepFloor(unit, gone)
    return gone.length
  }
}

type DeletedRow = { seq: number; chain: ArrayBuffer | null }

/** Keeps what the oldest row that is left was linked with. */
function keepFloor(unit: Unit, gone: readonly DeletedRow[]): void {
  const newest = gone.reduce<DeletedRow | null>((one, other) => (one && one.seq > other.seq ? one : other), null)
  if (newest?.chain) unit.write(CHAIN_FLOOR, Buffer.from(newest.chain).toString('hex'))
}
