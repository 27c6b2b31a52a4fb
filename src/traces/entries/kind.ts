import type { Json } from '../../base/json.ts'
import type { EntryHead, EntryKind, LogEntry, NewEntry, SkillEntryKind } from '../../contract/log-entry.ts'
import type { SpanKind } from '../../contract/reports/trace.ts'
import type { NoticeType } from '../../contract/settings/webhooks.ts'
import type { Said } from './said.ts'
import type { Tally } from './tally.ts'

/** The fields of a session's entries are as the session writes them. */
export type SkillEntry = EntryHead & { readonly kind: SkillEntryKind } & Readonly<Record<string, unknown>>
export type EntryOf<Kind extends EntryKind> = Kind extends SkillEntryKind ? SkillEntry : Extract<NewEntry, { kind: Kind }>
type LoggedOf<Kind extends EntryKind> = Kind extends SkillEntryKind ? SkillEntry : Extract<LogEntry, { kind: Kind }>

/** A notice that an entry calls for. */
export type Found = { type: NoticeType; data: Record<string, Json> }

/** The meaning of a kind of entries: its span, what it adds to statistics, and its notices. */
type KindOf<Kind extends EntryKind> = {
  span: SpanKind
  said: (entry: LoggedOf<Kind>, scope: string) => Said
  counts?: (entry: EntryOf<Kind>, tally: Tally) => void
  notices?: (entry: EntryOf<Kind>) => Found[]
}
export type EveryKind = { [Kind in EntryKind]: KindOf<Kind> }
export type Kinds = Partial<EveryKind>
