import type { LogEntry, NewEntry } from '../../contract/log-entry.ts'
import type { SpanKind } from '../../contract/reports/trace.ts'
import { events } from './events.ts'
import type { EveryKind, Found } from './kind.ts'
import { reflexes } from './reflexes.ts'
import { note, type Said } from './said.ts'
import { skills } from './skills.ts'
import type { Tally } from './tally.ts'
import { turns } from './turns.ts'
import { upkeep } from './upkeep.ts'

/** Every kind of log entries. Spans, statistics and notices are projections of this table. */
const table: EveryKind = { ...events, ...turns, ...reflexes, ...skills, ...upkeep }

/** Any kind, by the entry that has it. */
type AnyKind = {
  span: SpanKind
  said: (entry: LogEntry, scope: string) => Said
  counts?: (entry: NewEntry, tally: Tally) => void
  notices?: (entry: NewEntry) => Found[]
}
const byName = new Map(Object.entries(table as unknown as Record<string, AnyKind>))

/** Entries of a later version may have kinds that this one lacks. */
export const spanKindOf = (kind: string): SpanKind => byName.get(kind)?.span ?? 'note'

/** Names and attributes by the semantic conventions that docs/observability.md names. */
export const describe = (entry: LogEntry, scope: string): Said => byName.get(entry.kind)?.said(entry, scope) ?? note(entry.kind)

/** Counts one log entry. The log alone gives the same numbers again. */
export const foldEntry = (entry: NewEntry, tally: Tally): void => byName.get(entry.kind)?.counts?.(entry, tally)

/** The notices that a log entry calls for. */
export const noticesOf = (entry: NewEntry): Found[] => byName.get(entry.kind)?.notices?.(entry) ?? []
