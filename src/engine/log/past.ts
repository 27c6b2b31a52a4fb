import type { Result } from '../../base/result.ts'
import type { EventRecord } from '../../contract/event-record.ts'
import type { LogFilter, LogRead } from '../../contract/scope-api.ts'
import type { ArchivedFile } from '../../contract/scope.ts'
import type { UnitOfWork } from '../storage/unit.ts'

/** Tables of a scope whose old rows an archive keeps. */
export type Kept = 'log' | 'events' | 'parts'
type Wanted = { ids: readonly string[]; ranges?: readonly [number, number][] }

/** Reads what a scope still has, and what it has moved to an archive. */
export type Past = {
  log(after: number, limit: number, before?: number, only?: LogFilter): Promise<LogRead>
  event(id: string): Promise<Result<{ record: EventRecord | null }>>
  search<Row>(kind: Kept, wanted: Wanted, isWanted: (row: Row) => boolean): Promise<{ rows: Row[]; complete: boolean }>
  files(after: number, limit: number): ArchivedFile[]
  readonly newest: number
}

/** `mark`: the last entry that D1 has followed. Times in ms. */
export type Expired = { before: number; kept: readonly string[] | null; floor: number; mark: number }

/** Takes expired rows before the scope deletes them. */
export type Archiving = {
  readonly lastError: string | null
  failed(error: string): void
  /** Returns true if expired rows are left. Throws if the archive is unavailable. */
  run(unit: UnitOfWork, expired: () => Expired): Promise<boolean>
}
