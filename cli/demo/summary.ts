import type { ScopeState } from '../../src/contract/scope.ts'
import type { WaitingApproval } from './approvals.ts'
import type { DeadLetter } from './failing-scope.ts'
import { reflexFigures, type ReflexFigures } from './reflex-tally.ts'
import type { SkillTallies } from './skill-tally.ts'
import { addressesBy, totals, type Block, type DemoState } from './state.ts'

/** The demo's own time in ms. `work` lasts from the first request to the last outcome. */
export type Times = { start: number; send: number; work: number; dead_letter: number; all: number }

export type Summary = {
  ok: true
  file: string
  lines: { total: number; sent: number; left_out: Record<string, number> }
  model: {
    name: string
    asked: boolean
    note: string
    calls: number
    failed: number
    input_tokens: number
    output_tokens: number
    cost_usd: number | null
  }
  events: {
    accepted: number
    ignored: number
    by_reflex: number
    by_turn: number
    dead_lettered: number
    cancelled: number
    retried: number
    duplicates: number
  }
  /**
   * A decider of events: a reflex that fired, or a turn. `without_model`: neither a model nor its
   * offline substitute was called.
   */
  decisions: { all: number; by_reflex: number; by_turn: number; without_model: number }
  reflexes: Record<string, ReflexFigures>
  turns: DemoState['turns'] & { smallest_window: number; largest_window: number }
  effects: DemoState['effects']
  /** Results of proposals, by skill id. */
  skills: SkillTallies
  /** Pending approvals. */
  approvals: readonly WaitingApproval[]
  blocked: readonly Block[]
  /** Counted in addresses. */
  blocked_by: { reflex: number; turn: number }
  /** The reply of the last turn that acted; null if none did. */
  said: string | null
  dead_letters: readonly DeadLetter[]
  events_per_second: number
  /** Requested lines per second; null for no limit. */
  speed: number | null
  /** `model` and `effects` are parts of `turns`; `reflex_effects` is in addition. */
  times_ms: Times & { turns: number; model: number; effects: number; reflex_effects: number }
  scopes: { scope: string; agent: string; counters: ScopeState['counters'] }[]
}

export type Outcome = {
  file: string
  left_out: Record<string, number>
  speed: number | null
  state: DemoState
  /** The sums over the log's scopes, after all events had their outcome. */
  scopes: readonly ScopeState[]
  dead_letters: readonly DeadLetter[]
  approvals: readonly WaitingApproval[]
  times: Times
}

/**
 * The results of the demo. Counts are the scopes' own counters; decisions and durations come from
 * their logs.
 */
export function summarise({ file, left_out, speed, state, scopes, dead_letters, approvals, times }: Outcome): Summary {
  const sum = (name: keyof ScopeState['counters']) => scopes.reduce((total, { counters }) => total + counters[name], 0)
  const { name, ...model } = state.model
  const by_reflex = totals(state).reflexed
  const asked = name !== null && name !== 'offline'
  return {
    ok: true,
    file,
    lines: { ...state.lines, left_out },
    model: {
      name: name ?? 'offline',
      asked,
      note: asked ? 'a language model answered' : 'an offline stand-in answered: rules, no network',
      ...model,
    },
    events: {
      accepted: sum('accepted'),
      ignored: sum('ignored'),
      by_reflex,
      by_turn: sum('completed') - by_reflex,
      dead_lettered: sum('dead_lettered'),
      cancelled: sum('cancelled'),
      retried: sum('retried'),
      duplicates: sum('duplicates'),
    },
    decisions: {
      all: by_reflex + state.decided.turns,
      by_reflex,
      by_turn: state.decided.turns,
      without_model: by_reflex + state.decided.without_model,
    },
    reflexes: Object.fromEntries(Object.entries(state.reflexes).map(([id, tally]) => [id, reflexFigures(tally)])),
    turns: { ...state.turns, smallest_window: state.windows.smallest, largest_window: state.windows.largest },
    effects: state.effects,
    skills: state.skills,
    approvals,
    blocked: state.blocked,
    blocked_by: { reflex: addressesBy(state.blocked, 'reflex'), turn: addressesBy(state.blocked, 'turn') },
    said: state.decisions.findLast(({ status, window, why }) => status === 'result' && window !== 'reflex' && why !== '')?.why ?? null,
    dead_letters,
    events_per_second: times.work > 0 ? Math.round((totals(state).accepted * 1000) / times.work) : 0,
    speed,
    times_ms: { ...times, ...state.spent_ms },
    scopes: scopes.map(({ scope, agent, counters }) => ({ scope, agent, counters })),
  }
}
