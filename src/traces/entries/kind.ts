import type { Json } from '../../base/json.ts'
import type { DecisionMade } from '../../features/decisions/contract/entry.ts'
import type { EntryHead, EntryKind, NewEntry, SkillEntryKind, EntryOf } from '../../contract/log-entry.ts'
import type { Family } from '../../features/statistics/contract/statistics.ts'
import type { SpanKind } from '../../contract/reports/trace.ts'
import type { NoticeType } from '../../features/notices/contract/setting.ts'
import { sampleBucket } from '../../reflexes/metrics.ts'
import type { Counts } from './counts.ts'

/** The fields of a session's entries are as the session writes them. */
export type TypedSkillEntry = EntryHead & { readonly kind: SkillEntryKind } & Readonly<Record<string, unknown>>
export type NewEntryOf<Kind extends EntryKind> = Kind extends SkillEntryKind ? TypedSkillEntry : Extract<NewEntry, { kind: Kind }>
type LoggedOf<Kind extends EntryKind> = Kind extends SkillEntryKind ? TypedSkillEntry : EntryOf<Kind>

/** A notice that an entry calls for. */
export type FoundNotice = { type: NoticeType; data: Record<string, Json> }

/**
 * A kind of entries: its meaning, its span, what it adds to statistics, and the notices that it
 * calls for. Its sentence is in `sentences.ts`, which the dashboard loads.
 */
type KindOf<Kind extends EntryKind> = {
  means: string
  span: SpanKind
  said: (entry: LoggedOf<Kind>, scope: string) => SpanText
  counts?: (entry: NewEntryOf<Kind>, tally: Tally) => void
  notices?: { [Type in NoticeType]?: (entry: NewEntryOf<Kind>) => FoundNotice['data'] | null }
}
export type EveryKind = { [Kind in EntryKind]: KindOf<Kind> }
export type Kinds = Partial<EveryKind>

/** An entry's contribution to its span. A span that begins runs until an entry gives it an end. */
export type SpanText = {
  kind?: SpanKind
  name?: string
  begins?: true
  ends?: 'ok' | 'error'
  /** Ends with the last of its children. */
  contains?: true
  attributes: Record<string, unknown>
}

export const ended = (ok: boolean) => (ok ? ('ok' as const) : ('error' as const))
export const errorType = (ok: boolean, type: unknown) => (ok ? {} : { 'error.type': type })

export const note = (name: string, attributes: Record<string, unknown> = {}): SpanText => ({ name, ends: 'ok', attributes })

/** The judgement of a decision model's answer: the action, or why a turn decides. */
export const middleOf = (middle: DecisionMade['middle']) =>
  middle && {
    'reflex.decision.id': middle.decision_id,
    'reflex.version': middle.version,
    'reflex.decision.probability': middle.score,
    'reflex.decision.threshold': middle.threshold,
    'reflex.decision.left': middle.left,
    'reflex.decision.detail': middle.detail,
    'reflex.action': middle.action,
  }

const TIMED_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7/

/** The time in the queue: an id that was made with its event begins with the time in ms. */
export function queued(id: string, at: string): Record<string, unknown> {
  if (!TIMED_ID.test(id)) return {}
  const sent = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  return { 'reflex.event.queued_ms': Math.max(0, Date.parse(at) - sent) }
}

/** A bought reflex: the deal, and the average turn of the scope, which it spared. */
export const licenceOf = ({ licence }: EntryOf<'reflex-fired'>) =>
  licence && {
    'reflex.licence.deal': licence.deal_id,
    ...(licence.saves && {
      'reflex.licence.saved_model_calls': licence.saves.model_calls,
      'reflex.licence.saved_tokens': licence.saves.tokens,
      'reflex.licence.saved_usd': licence.saves.cost_usd,
    }),
  }

type Used = EntryOf<'turn-ended' | 'model-called' | 'decision-made' | 'dry-turn-ended'>
export const usageOf = ({ usage: { input_tokens, output_tokens, cost_usd } }: Used) => ({
  'gen_ai.usage.input_tokens': input_tokens,
  'gen_ai.usage.output_tokens': output_tokens,
  'reflex.cost_usd': cost_usd,
})

/** Adds to the open buckets. A count named `max_…` is compared instead. */
export type Add = (family: Family, label: string, counts: Readonly<Record<string, number>>) => void
/** The same, for declared counts. */
type AddCounts = (...added: { [Of in Family]: [family: Of, label: string, counts: Counts<Of>] }[Family]) => void

/** The running turn, as far as its end is counted with what happened in it. */
type OpenTurn = {
  span_id: string
  /** The first card of its bulletin, if it had one. */
  first: string | null
  has_bulletin: boolean
  /** `pending`: proposals that did not run successfully. */
  skills: Record<string, { runs: number; ok: number; pending: number }>
}
export type FoldRecord = {
  turn: OpenTurn | null
  /** Failures in a row, by skill. */
  streaks: Record<string, number>
  /** Sums over all turns, whose averages are what a reflex saves. */
  sums: { turns: number; model_calls: number; tokens: number; cost_usd: number }
}

export const emptyFold = (): FoldRecord => ({ turn: null, streaks: {}, sums: { turns: 0, model_calls: 0, tokens: 0, cost_usd: 0 } })

/** `record`: what later entries are counted with. */
export type Tally = { record: FoldRecord; add: AddCounts; thinks: boolean }

export const sample = <Name extends string>(name: Name, value: number) =>
  ({ [`${name}.${sampleBucket(value)}`]: 1 }) as { [Bucket in `${Name}.${number}`]: number }
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export const turnOf = ({ turn }: FoldRecord, parent_id: string | null): OpenTurn | null => (turn?.span_id === parent_id ? turn : null)

export const inTurn = ({ skills }: OpenTurn, id: string) => (skills[id] ??= { runs: 0, ok: 0, pending: 0 })

/** The sums with a turn, if the entry ends one. */
export function addTurn(sums: FoldRecord['sums'], entry: NewEntry): FoldRecord['sums'] {
  if (entry.kind !== 'turn-ended') return sums
  const { model_calls, input_tokens, output_tokens, cost_usd } = entry.usage
  return {
    turns: sums.turns + 1,
    model_calls: sums.model_calls + model_calls,
    tokens: sums.tokens + input_tokens + output_tokens,
    cost_usd: sums.cost_usd + (cost_usd ?? 0),
  }
}
