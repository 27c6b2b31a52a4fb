import type { Act } from '../protocol/reflex.ts'
import type { EntryHead, TurnEnd, Usage } from '../protocol/log-entry.ts'
import type { Claimed } from './event-row.ts'
import type { Seen } from './working-memory.ts'

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
}

/** What is on disk of it, so that the next start of the object can say what was lost. */
export type TurnRecord = { turn_id: string; head: EntryHead; since: number }

/** How a trigger ended, before it is settled. */
export type Ending = { status: Exclude<TurnEnd, 'cancelled' | 'lost'>; result: unknown; error: string | null; until?: number | null }

export const noUsage = (): Usage => ({ input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 })
