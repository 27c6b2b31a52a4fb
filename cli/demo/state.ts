import type { TurnEnd } from '../../src/contract/log-entry.ts'
import type { ReflexTally } from './reflex-tally.ts'
import type { SkillTallies } from './skill-tally.ts'

/** The state of one scope as read from its log. */
export type ScopeTally = {
  accepted: number
  ignored: number
  /** Events completed by a reflex that fired. */
  reflexed: number
  /** Events completed by a turn that considered them. */
  considered: number
  dead_lettered: number
  cancelled: number
  retried: number
  turns: number
  acted: number
  last_seq: number
  /** Number of events in the current turn; null if no turn runs. */
  window: number | null
}

/** A decision and how it was made: a turn over a number of events, or a reflex. */
export type Decision = { at: string; scope: string; status: TurnEnd; window: number | 'reflex'; blocked: string[]; why: string }
/** `attempts`: failed logins from the address in the whole log. */
export type Block = { address: string; reason: string; scope: string; at: string; by: Decider; attempts: number }
export type Decider = 'reflex' | 'turn'
/** `block` only for the tool `block`. */
export type Running = { by: Decider; block: Pick<Block, 'address' | 'reason'> | null }
export type Failure = { scope: string; event_id: string; attempts: number; error: string; at: string }

export type DemoState = {
  lines: { total: number; sent: number }
  scopes: Readonly<Record<string, ScopeTally>>
  /** The scope whose event fails on purpose; its counts are kept apart from the log's scopes. */
  failing: string
  turns: { started: number; acted: number; none: number; failed: number; other: number }
  /** Turns that reached a decision, and those among them that called no model. */
  decided: { turns: number; without_model: number }
  /** By reflex id. */
  reflexes: Readonly<Record<string, ReflexTally>>
  skills: SkillTallies
  windows: { smallest: number; largest: number }
  /**
   * `effects` are those of turns, included in their time; `reflex_effects` are those of reflexes,
   * in addition.
   */
  spent_ms: { turns: number; model: number; effects: number; reflex_effects: number }
  model: { calls: number; failed: number; input_tokens: number; output_tokens: number; cost_usd: number | null; name: string | null }
  effects: { started: number; ok: number; failed: number; unknown: number; reused: number }
  /** Effects without an end, by id. */
  running: Readonly<Record<string, Running>>
  /** Failed logins in the log, by address. */
  attempts: ReadonlyMap<string, number>
  blocked: readonly Block[]
  decisions: readonly Decision[]
  retries: readonly Failure[]
  dead: readonly Failure[]
  /** Time of the last event's end, by the server's clock, in ISO. */
  last_ended_at: string | null
}

const noTally: ScopeTally = {
  accepted: 0,
  ignored: 0,
  reflexed: 0,
  considered: 0,
  dead_lettered: 0,
  cancelled: 0,
  retried: 0,
  turns: 0,
  acted: 0,
  last_seq: 0,
  window: null,
}

type Start = { total: number; scopes: readonly string[]; failing: string; attempts?: ReadonlyMap<string, number> }

export const initialState = (options: Start): DemoState => ({
  lines: { total: options.total, sent: 0 },
  scopes: Object.fromEntries([...options.scopes, options.failing].map((scope) => [scope, noTally])),
  failing: options.failing,
  turns: { started: 0, acted: 0, none: 0, failed: 0, other: 0 },
  decided: { turns: 0, without_model: 0 },
  reflexes: {},
  skills: {},
  windows: { smallest: 0, largest: 0 },
  spent_ms: { turns: 0, model: 0, effects: 0, reflex_effects: 0 },
  model: { calls: 0, failed: 0, input_tokens: 0, output_tokens: 0, cost_usd: 0, name: null },
  effects: { started: 0, ok: 0, failed: 0, unknown: 0, reused: 0 },
  running: {},
  attempts: options.attempts ?? new Map<string, number>(),
  blocked: [],
  decisions: [],
  retries: [],
  dead: [],
  last_ended_at: null,
})

export const tallyOf = (state: DemoState, scope: string): ScopeTally => state.scopes[scope] ?? noTally

/** Sums over the log's scopes, without the scope that fails on purpose. */
export function totals(
  state: DemoState,
): Pick<ScopeTally, 'accepted' | 'ignored' | 'reflexed' | 'considered' | 'dead_lettered' | 'cancelled' | 'retried'> & { waiting: number } {
  const own = Object.entries(state.scopes).flatMap(([scope, tally]) => (scope === state.failing ? [] : [tally]))
  const sum = (name: 'accepted' | 'ignored' | 'reflexed' | 'considered' | 'dead_lettered' | 'cancelled' | 'retried') =>
    own.reduce((total, tally) => total + tally[name], 0)
  const [accepted, ignored, considered] = [sum('accepted'), sum('ignored'), sum('considered')]
  const [dead_lettered, cancelled] = [sum('dead_lettered'), sum('cancelled')]
  return {
    accepted,
    ignored,
    reflexed: sum('reflexed'),
    considered,
    dead_lettered,
    cancelled,
    retried: sum('retried'),
    waiting: own.reduce((total, tally) => total + waitingIn(tally), 0),
  }
}

/** Events that are accepted and have no outcome yet. */
export const waitingIn = ({ accepted, ignored, reflexed, considered, dead_lettered, cancelled }: ScopeTally): number =>
  accepted - ignored - reflexed - considered - dead_lettered - cancelled

/** The number of addresses blocked by one of the two; the first to block counts. */
export const addressesBy = (blocked: readonly Block[], by: Decider): number =>
  addresses(blocked.filter((block, index) => block.by === by && blocked.findIndex(({ address }) => address === block.address) === index))

/** The number of blocked addresses, each once even if several scopes blocked it. */
export const addresses = (blocked: readonly Block[]): number => new Set(blocked.map(({ address }) => address)).size
