import { isJsonFields, type JsonFields } from '../../../base/json.ts'

/** `name`: the tool or the skill; a run of a skill is one act. */
export type TracedAct = {
  kind: string
  name: string
  input: JsonFields
  output?: unknown
  ok: boolean
  cost_usd: number
  duration_ms: number
  /** The calls that it joins, one for each item of a list: its output is the list of theirs. */
  loop?: CallLoop
}

/** A turn as far as skills are learned from it. Every episode is one. */
export type Trace = {
  trace_id: string
  at: number
  /** The sender of the event; absent if a person vouches for it. */
  source?: string
  place: { project?: string; env?: string | readonly string[]; toolset?: string; repo?: string; agent: string }
  goal?: { text: string; labels: string[] }
  /** As the turn found it: `ctx`, `env`, `work` and `policy`. */
  blackboard?: JsonFields
  acts: readonly TracedAct[]
  /** `cost_usd` is the cost of its model calls. */
  usage: { model_calls: number; tokens: number; cost_usd: number; duration_ms: number }
  outcome: 'ok' | 'failed' | 'overruled' | 'corrected'
}

const DEEPEST = 3

/** A call with the symbol that patterns are made of. */
export type Call = { act: TracedAct; symbol: string }

/**
 * Calls that a turn made once for each item of a list, in order. `argument` had the item, or its
 * `field`; the list was at `path` in the output of the latest call with the symbol `source`.
 */
export type CallLoop = { argument: string; source: string; path: string; field: string | null; calls: readonly TracedAct[] }

/**
 * An occurrence: the turn, what it cost as a whole, and the calls of the pattern; null for a call
 * of a branch that the turn did not make.
 */
export type Occurrence = { trace: Trace; turn_usd: number; calls: (TracedAct | null)[]; before: string | null; next: Call | null }

/** The calls of a trace in order, without those that were repeated after a failure. */
export function callsOf({ acts }: Trace): Call[] {
  const calls = acts.flatMap((act): Call[] => (act.kind === 'tool' || act.kind === 'skill' ? [{ act, symbol: symbolOf(act) }] : []))
  return calls.filter(({ act, symbol }, index) => act.ok || symbol !== calls[index + 1]?.symbol)
}

/** A call by its tool and the shape of its arguments; a run of a skill by the skill alone. */
const symbolOf = ({ kind, name, input }: TracedAct): string =>
  kind === 'skill' ? `skill:${name.split('@', 1)[0]}` : `${name}${shapeOf(input, DEEPEST)}`

function shapeOf(value: unknown, depth: number): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  if (!isJsonFields(value)) return typeof value
  if (depth === 0) return 'object'
  const names = Object.keys(value).sort()
  return `{${names.map((name) => `${JSON.stringify(name).slice(1, -1)}:${shapeOf(value[name], depth - 1)}`).join(',')}}`
}

/** The calls that a loop stands for, else the call itself. */
export const eachCall = (act: TracedAct): readonly TracedAct[] => act.loop?.calls ?? [act]

export const isSkill = (symbol: string): boolean => symbol.startsWith('skill:')

/** The whole cost of a turn: its model calls and its tools. */
export const costOf = ({ usage, acts }: Trace): number => usage.cost_usd + sumOf(acts.map(({ cost_usd }) => cost_usd))

export const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0)

export const meanOf = (numbers: readonly number[]): number => (numbers.length === 0 ? 0 : sumOf(numbers) / numbers.length)

/** The 95th percentile, by the nearest rank. */
export function p95Of(numbers: readonly number[]): number {
  const sorted = Array.from(numbers).sort((one, other) => one - other)
  return sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0
}
