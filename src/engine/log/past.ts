import type { Result } from '../../base/result.ts'
import type { EventRecord } from '../../contract/event-record.ts'
import type { LogFilter, LogRead } from '../../contract/scope-api.ts'
import type { ArchivedFile } from '../../contract/scope.ts'
import type { UnitOfWork } from '../../kernel/unit.ts'
import type { ArchiveKind, ArchiveLink } from '../../base/archive-file.ts'
import type { Log } from './log.ts'
import { entryFilter } from './search.ts'

export type WantedRows = { ids: readonly string[]; ranges?: readonly [number, number][] }
export type FoundRows<Row> = { rows: Row[]; complete: boolean }

/** Reads the rows of a scope that an archive has. */
export type Archived = {
  /** A page that begins in the archive; null if the scope itself has all of these entries. */
  log(after: number, limit: number, before: number, only: LogFilter): Promise<LogRead | null>
  event(id: string): Promise<Result<{ record: EventRecord | null }>>
  search<Row>(kind: ArchiveKind, wanted: WantedRows, isWanted: (row: Row) => boolean): Promise<FoundRows<Row>>
  files(after: number, limit: number): ArchivedFile[]
  /** The file that has this entry, with the links of its rows; null without one. */
  linked(seq: number): Promise<LinkedFile | null>
}

export type LinkedFile = { first_seq: number; last_seq: number; lines: readonly string[]; links: readonly ArchiveLink[] }

/** Reads what a scope still has, and what it has moved to an archive. */
export class Past {
  readonly #log: Pick<Log, 'last' | 'find'>
  #archived: Archived | null = null

  constructor(log: Pick<Log, 'last' | 'find'>) {
    this.#log = log
  }

  /** Reads from this archive, too. */
  readBy(archived: Archived): void {
    this.#archived = archived
  }

  /** A page may be shorter than `limit`. */
  async log(after: number, limit: number, before = Number.MAX_SAFE_INTEGER, only: LogFilter = {}): Promise<LogRead> {
    const archived = await this.#archived?.log(after, limit, before, only)
    if (archived) return archived
    const { last } = this.#log
    const { found, reached } = this.#log.find(entryFilter(only), { after, limit, before, contexts: only.contexts })
    return { entries: found.map(({ text }) => text), last_seq: last, next: nextAfter(reached, { last, before }) }
  }

  /** An event that retention has deleted. */
  async event(id: string): Promise<Result<{ record: EventRecord | null }>> {
    return this.#archived?.event(id) ?? { ok: true, record: null }
  }

  /** Searches the archive alone. Not complete if it cannot be read, or too much of it fits. */
  async search<Row>(kind: ArchiveKind, wanted: WantedRows, isWanted: (row: Row) => boolean): Promise<FoundRows<Row>> {
    return this.#archived?.search(kind, wanted, isWanted) ?? { rows: [], complete: true }
  }

  /** The file of the archive that has this entry, with the links of its rows. */
  async linked(seq: number): Promise<LinkedFile | null> {
    return this.#archived?.linked(seq) ?? null
  }

  /** The manifest, oldest file first. */
  files(after: number, limit: number): ArchivedFile[] {
    return this.#archived?.files(after, limit) ?? []
  }
}

/** The `after` of the next page; null at the end. */
export const nextAfter = (reached: number, { last, before }: { last: number; before: number }): number | null =>
  reached < Math.min(last, before - 1) ? reached : null

/** `mark`: the last entry that D1 has followed. Times in ms. */
export type Expired = { before: number; kept: readonly string[] | null; floor: number; mark: number }

/** Takes expired rows before the scope deletes them. */
export type Archiving = {
  failed(error: string): void
  /** Returns true if expired rows are left. Throws if the archive is unavailable. */
  run(unit: UnitOfWork, expired: () => Expired): Promise<boolean>
}
