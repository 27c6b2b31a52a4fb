import type { Act } from '../../contract/reflex.ts'
import type { ModelFault } from '../../base/faults.ts'
import type { FailedCall } from '../../contract/event-record.ts'
import type { EntryHead, TurnEnd, Usage } from '../../contract/log-entry.ts'
import type { Claimed } from '../inbox/event-row.ts'
import type { Seen } from '../context/working-memory.ts'

/** A turn in flight. `stop` aborts its signal; from then on it can have no effect any more. */
export type Turn = {
  turn_id: string
  head: EntryHead
  since: number
  claimed: Claimed[]
  earlier_turns: string[]
  seen: Seen
  signal: AbortSignal
  stop: (reason: Error) => void
  usage: Usage
  /** What it has done so far. */
  acts: Act[]
  failed_calls: FailedCall[]
  model: ModelWitness
  /** Calls of `deps.call` that have not ended. */
  running: Map<Promise<unknown>, string>
  /** Mistakes of the trigger that change nothing, for the log. */
  warnings: string[]
}

/** The latest news of the model's provider: an answer, or its fault. */
export type ModelWitness = { answered: boolean; fault: ModelFault | null }

/** What is on disk of it, so that the next start of the object can say what was lost. */
export type TurnRecord = { turn_id: string; head: EntryHead; since: number }

/** How a trigger ended, before it is settled. */
export type Ending = {
  status: Exclude<TurnEnd, 'cancelled' | 'lost'>
  result: unknown
  error: string | null
  stack?: string | null
  /** `refused`: when it may be tried again, null for when the settings change. */
  until?: number | null
  /** The model provider's, where that is why it ended. */
  fault?: ModelFault | null
}

export const nothingYet = (): Pick<Turn, 'failed_calls' | 'model' | 'running' | 'warnings'> => ({
  failed_calls: [],
  model: { answered: false, fault: null },
  running: new Map(),
  warnings: [],
})

export const noUsage = (): Usage => ({ input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 })
