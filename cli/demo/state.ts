import type { TurnEnd } from '../../src/protocol/log-entry.ts'

/** What one scope's log has told so far. */
export type ScopeTally = {
  accepted: number
  ignored: number
  /** Completed by a turn that considered them. */
  considered: number
  dead_lettered: number
  cancelled: number
  retried: number
  turns: number
  acted: number
  last_seq: number
  /** Events that the turn in flight looks at; null when none is in flight. */
  window: number | null
}

/** A turn that ended: what the trigger looked at, and what it made of it. */
export type Decision = { at: string; scope: string; status: TurnEnd; window: number; blocked: string[]; why: string }
export type Block = { address: string; reason: string; scope: string; at: string }
export type Failure = { scope: string; event_id: string; attempts: number; error: string; at: string }

export type DemoState = {
  lines: { total: number; sent: number }
  scopes: Readonly<Record<string, ScopeTally>>
  /** The scope whose event fails on purpose; its numbers are kept apart from those of the log. */
  failing: string
  turns: { started: number; acted: number; none: number; failed: number; other: number }
  windows: { smallest: number; largest: number }
  spent_ms: { turns: number; model: number; effects: number }
  model: { calls: number; failed: number; input_tokens: number; output_tokens: number; cost_usd: number | null; name: string | null }
  effects: { started: number; ok: number; failed: number; unknown: number; reused: number }
  /** Why the tool `block` was called, by address. */
  reasons: Readonly<Record<string, string>>
  blocked: readonly Block[]
  decisions: readonly Decision[]
  retries: readonly Failure[]
  dead: readonly Failure[]
  /** When the last event ended, by the server's clock; ISO. */
  last_ended_at: string | null
}

const noTally: ScopeTally = {
  accepted: 0,
  ignored: 0,
  considered: 0,
  dead_lettered: 0,
  cancelled: 0,
  retried: 0,
  turns: 0,
  acted: 0,
  last_seq: 0,
  window: null,
}

export const initialState = (options: { total: number; scopes: readonly string[]; failing: string }): DemoState => ({
  lines: { total: options.total, sent: 0 },
  scopes: Object.fromEntries([...options.scopes, options.failing].map((scope) => [scope, noTally])),
  failing: options.failing,
  turns: { started: 0, acted: 0, none: 0, failed: 0, other: 0 },
  windows: { smallest: 0, largest: 0 },
  spent_ms: { turns: 0, model: 0, effects: 0 },
  model: { calls: 0, failed: 0, input_tokens: 0, output_tokens: 0, cost_usd: 0, name: null },
  effects: { started: 0, ok: 0, failed: 0, unknown: 0, reused: 0 },
  reasons: {},
  blocked: [],
  decisions: [],
  retries: [],
  dead: [],
  last_ended_at: null,
})

export const tallyOf = (state: DemoState, scope: string): ScopeTally => state.scopes[scope] ?? noTally

/** The sums over the scopes of the log, without the one that fails on purpose. */
export function totals(
  state: DemoState,
): Pick<ScopeTally, 'accepted' | 'ignored' | 'considered' | 'dead_lettered' | 'cancelled' | 'retried'> & { waiting: number } {
  const own = Object.entries(state.scopes).flatMap(([scope, tally]) => (scope === state.failing ? [] : [tally]))
  const sum = (name: 'accepted' | 'ignored' | 'considered' | 'dead_lettered' | 'cancelled' | 'retried') =>
    own.reduce((total, tally) => total + tally[name], 0)
  const [accepted, ignored, considered] = [sum('accepted'), sum('ignored'), sum('considered')]
  const [dead_lettered, cancelled] = [sum('dead_lettered'), sum('cancelled')]
  return {
    accepted,
    ignored,
    considered,
    dead_lettered,
    cancelled,
    retried: sum('retried'),
    waiting: own.reduce((total, tally) => total + waitingIn(tally), 0),
  }
}

/** Accepted and without an outcome yet. */
export const waitingIn = ({ accepted, ignored, considered, dead_lettered, cancelled }: ScopeTally): number =>
  accepted - ignored - considered - dead_lettered - cancelled

/** How many addresses were blocked; one may be by several hosts' scopes. */
export const addresses = (blocked: readonly Block[]): number => new Set(blocked.map(({ address }) => address)).size
