import type { NewEntry } from '../../contract/log-entry.ts'
import type { Family } from '../../contract/reports/statistics.ts'
import { sampleBucket } from '../../reflexes/metrics.ts'

export type Counts = Record<string, number>
/** Adds to the open buckets. A count named `max_…` is compared instead. */
export type Add = (family: Family, label: string, counts: Counts) => void

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
export type Tally = { record: FoldRecord; add: Add; has_trigger: boolean }

export const sample = (name: string, value: number): Counts => ({ [`${name}.${sampleBucket(value)}`]: 1 })
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
