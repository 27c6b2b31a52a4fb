import type { Act, FailedRead } from '../../contract/reflex.ts'
import type { ModelWitness } from '../../agent/turn-ending.ts'
import type { FailedCall, FailedRun } from '../../contract/event-record.ts'
import type { EarlierAct, EntryHead, NewEntry, Usage } from '../../contract/log-entry.ts'
import type { Claimed } from '../inbox/inbox.ts'
import type { SeenContext } from '../context/working-memory.ts'
import type { BehindModel } from '../../contract/model-request.ts'
import type { Event } from '../../core/event.ts'

/** A running turn. After `stop` it has no effects. */
export type Turn = {
  turn_id: string
  head: EntryHead
  since: number
  started: Extract<NewEntry, { kind: 'turn-started' }>
  /** `seq` of `started` in the log, once it is written. */
  started_seq: number
  /** True once the claim is written. */
  held: boolean
  claimed: Claimed[]
  earlier_turns: string[]
  /** Acts that a sequence had done for its events before it failed. */
  done?: readonly EarlierAct[]
  seen: SeenContext
  signal: AbortSignal
  stop: (reason: Error) => void
  usage: Usage
  acts: Act[]
  /** Inputs of its calls and events, and outputs of its calls, by their places in `acts`. */
  inputs: Record<number, unknown>
  outputs: Record<number, unknown>
  failed_reads: FailedRead[]
  /** Readings of the clock, answers of `deps.done`, tools beside the agent's: for replays. */
  readings: Readings
  /** The clock, whose readings are kept. */
  now: () => number
  /** The tools that it named before it read anything; null if it named none. */
  needed: ReadonlySet<string> | null
  /** Others would not fit, or are waiting already. */
  full?: true
  failed_calls: FailedCall[]
  failed_runs: FailedRun[]
  model: ModelWitness
  /** Unfinished calls of `deps.call`, with their tools. */
  running: Map<Promise<unknown>, string>
  /** Parts of the instructions and tools of its model calls, by hash. */
  shown: { lines: Set<string>; tools: Set<string> } | null
  /** A request that it answers: with the words that direct it, and what persons have allowed. */
  asked?: { words: Event; allowed: (tool: string, input: unknown) => boolean; behind?: BehindModel }
  /** Harmless mistakes of the trigger, for the log. */
  warnings: string[]
}

/** A turn that has ended on disk, and whose trigger must be stopped. */
export type Stopped = { turn: Turn; why: string }

/** Times are in ms since the turn's start. */
export type Readings = { clock: number[]; done: boolean[]; offered: string[] }

const MOST_READINGS = 1000

/** Keeps a reading, up to a limit beyond which a replay cannot answer. */
export function keep<Value>(readings: Value[], value: Value): Value {
  if (readings.length < MOST_READINGS) readings.push(value)
  return value
}

/** The part on disk, from which `recover` reports a lost turn. */
export type TurnRecord = { turn_id: string; head: EntryHead; since: number; started_seq: number }

export const nothingYet = (): Pick<
  Turn,
  'inputs' | 'outputs' | 'failed_reads' | 'needed' | 'failed_calls' | 'failed_runs' | 'model' | 'running' | 'shown' | 'warnings'
> => ({
  inputs: {},
  outputs: {},
  failed_reads: [],
  needed: null,
  failed_calls: [],
  failed_runs: [],
  model: { answered: false, fault: null },
  running: new Map(),
  shown: null,
  warnings: [],
})

export const noUsage = (): Usage => ({ input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 })
