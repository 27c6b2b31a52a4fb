import type { Act } from '../../contract/reflex.ts'
import type { ModelFault } from '../../base/faults.ts'
import type { FailedCall } from '../../contract/event-record.ts'
import type { EntryHead, NewEntry, TurnEnd, Usage } from '../../contract/log-entry.ts'
import type { Claimed } from '../inbox/event-row.ts'
import type { Seen } from '../context/working-memory.ts'

/** A running turn. After `stop` it has no effects. */
export type Turn = {
  turn_id: string
  head: EntryHead
  since: number
  started: NewEntry
  /** `seq` of `started` in the log, once it is written. */
  started_seq: number
  /** True once the claim is written. */
  held: boolean
  claimed: Claimed[]
  earlier_turns: string[]
  seen: Seen
  signal: AbortSignal
  stop: (reason: Error) => void
  usage: Usage
  acts: Act[]
  failed_calls: FailedCall[]
  model: ModelWitness
  /** Unfinished calls of `deps.call`, with their tools. */
  running: Map<Promise<unknown>, string>
  /** Harmless mistakes of the trigger, for the log. */
  warnings: string[]
}

/** The provider's latest answer or fault. */
export type ModelWitness = { answered: boolean; fault: ModelFault | null }

/** The part on disk, from which `recover` reports a lost turn. */
export type TurnRecord = { turn_id: string; head: EntryHead; since: number; started_seq: number }

export type Ending = {
  status: Exclude<TurnEnd, 'cancelled' | 'lost'>
  result: unknown
  error: string | null
  stack?: string | null
  /** Only for `refused`: time of the next try; null waits for a change of the settings. */
  until?: number | null
  /** The provider's fault, if it ended the trigger. */
  fault?: ModelFault | null
}

export const nothingYet = (): Pick<Turn, 'failed_calls' | 'model' | 'running' | 'warnings'> => ({
  failed_calls: [],
  model: { answered: false, fault: null },
  running: new Map(),
  warnings: [],
})

export const noUsage = (): Usage => ({ input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 })
