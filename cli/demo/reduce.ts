import type { EntryKind, LogEntry, TurnEnd } from '../../src/contract/log-entry.ts'
import { countRun, noReflexTally } from './reflex-tally.ts'
import { countSkill } from './skill-tally.ts'
import { tallyOf, type Decision, type DemoState, type Failure, type Running, type ScopeTally } from './state.ts'

type Entry<Kind extends EntryKind> = Extract<LogEntry, { kind: Kind }>

/** Decisions and failures that are kept: more than any picture shows. */
const MOST_KEPT = 50

/**
 * Returns the state after one more log entry. An entry that was seen before, as after a resume,
 * changes nothing.
 */
export function reduce(state: DemoState, scope: string, entry: LogEntry): DemoState {
  if (entry.seq <= tallyOf(state, scope).last_seq) return state
  return tally(apply(state, scope, entry), scope, { last_seq: entry.seq })
}

export const sent = (state: DemoState, lines: number): DemoState => ({
  ...state,
  lines: { ...state.lines, sent: state.lines.sent + lines },
})

type Step<Kind extends EntryKind> = (state: DemoState, scope: string, entry: Entry<Kind>) => DemoState

const countSkills = (state: DemoState, _scope: string, entry: Parameters<typeof countSkill>[1]): DemoState => ({
  ...state,
  skills: countSkill(state.skills, entry),
})

/** Other kinds of entries change nothing. */
const steps: { [Kind in EntryKind]?: Step<Kind> } = {
  'event-accepted': (state, scope) => add(state, scope, 'accepted'),
  'event-ended': endEvent,
  'event-retried': (state, scope, entry) => ({
    ...add(state, scope, 'retried'),
    retries: [...state.retries, failureOf(scope, entry)].slice(-MOST_KEPT),
  }),
  'turn-started': startTurn,
  'turn-ended': endTurn,
  'model-called': (state, _scope, entry) => callModel(state, entry),
  'effect-started': (state, _scope, entry) => startEffect(state, entry),
  'effect-ended': endEffect,
  'reflex-fired': (state, _scope, entry) => runReflex(state, entry),
  'reflex-passed': (state, _scope, entry) => runReflex(state, entry),
  'approval-requested': countSkills,
  'skill-applied': countSkills,
  'skill-decided': countSkills,
  'skill-refused': countSkills,
}

function apply(state: DemoState, scope: string, entry: LogEntry): DemoState {
  const step = steps[entry.kind] as Step<EntryKind> | undefined
  return step?.(state, scope, entry) ?? state
}

function endEvent(state: DemoState, scope: string, entry: Entry<'event-ended'>): DemoState {
  const counted = add(
    state,
    scope,
    entry.status === 'completed' ? (entry.outcome.by === 'reflex' ? 'reflexed' : 'considered') : entry.status,
  )
  const ended = scope === state.failing ? counted : { ...counted, last_ended_at: entry.at }
  return entry.status === 'dead_lettered' ? { ...ended, dead: [...ended.dead, failureOf(scope, entry)].slice(-MOST_KEPT) } : ended
}

const failureOf = (scope: string, { event_ids, attempts, error, at }: Entry<'event-ended' | 'event-retried'>): Failure => ({
  scope,
  event_id: event_ids[0] ?? '',
  attempts,
  error: error ?? '',
  at,
})

function startTurn(state: DemoState, scope: string, { saw }: Entry<'turn-started'>): DemoState {
  const begun = tally(add(state, scope, 'turns'), scope, { window: saw.count })
  if (scope === state.failing) return begun
  const { smallest, largest } = state.windows
  const windows = { smallest: Math.min(smallest || saw.count, saw.count), largest: Math.max(largest, saw.count) }
  return { ...begun, windows, turns: { ...state.turns, started: state.turns.started + 1 } }
}

function endTurn(state: DemoState, scope: string, entry: Entry<'turn-ended'>): DemoState {
  const decision = decisionOf(scope, entry, tallyOf(state, scope).window ?? entry.event_ids.length)
  const ended = tally(entry.status === 'result' ? add(state, scope, 'acted') : state, scope, { window: null })
  const counted =
    scope === state.failing
      ? ended
      : { ...spend(ended, 'turns', entry.duration_ms), turns: countTurn(state.turns, entry.status), decided: countDecided(state, entry) }
  return decide(counted, decision)
}

const decide = (state: DemoState, decision: Decision): DemoState => ({
  ...state,
  decisions: [...state.decisions, decision].slice(-MOST_KEPT),
})

/** A failed or restarted turn decided nothing. */
function countDecided({ decided }: DemoState, { status, usage }: Entry<'turn-ended'>): DemoState['decided'] {
  if (status !== 'result' && status !== 'none') return decided
  return { turns: decided.turns + 1, without_model: decided.without_model + (usage.model_calls === 0 ? 1 : 0) }
}

function countTurn(turns: DemoState['turns'], status: TurnEnd): DemoState['turns'] {
  if (status === 'result') return { ...turns, acted: turns.acted + 1 }
  if (status === 'none') return { ...turns, none: turns.none + 1 }
  if (status === 'failed' || status === 'timeout') return { ...turns, failed: turns.failed + 1 }
  return { ...turns, other: turns.other + 1 }
}

function callModel(state: DemoState, { model: name, status, usage, duration_ms }: Entry<'model-called'>): DemoState {
  const { model } = state
  const cost_usd = model.cost_usd === null || usage.cost_usd === null ? null : model.cost_usd + usage.cost_usd
  return {
    ...spend(state, 'model', duration_ms),
    model: {
      calls: model.calls + 1,
      failed: model.failed + (status === 'failed' ? 1 : 0),
      input_tokens: model.input_tokens + usage.input_tokens,
      output_tokens: model.output_tokens + usage.output_tokens,
      cost_usd,
      name,
    },
  }
}

function startEffect(state: DemoState, { tool, input, effect_id, cause }: Entry<'effect-started'>): DemoState {
  const effects = { ...state.effects, started: state.effects.started + 1 }
  const { address, reason } = fieldsOf(input)
  const blocks = tool === 'block' && typeof address === 'string' && typeof reason === 'string'
  const by = 'by' in cause && cause.by.startsWith('reflex:') ? 'reflex' : 'turn'
  const running: Running = { by, block: blocks ? { address, reason } : null }
  return { ...state, effects, running: { ...state.running, [effect_id]: running } }
}

/** An address counts as blocked when the effect has ended, whoever requested it. */
function endEffect(state: DemoState, scope: string, { at, effect_id, status, duration_ms }: Entry<'effect-ended'>): DemoState {
  const { [effect_id]: ran, ...running } = state.running
  const spent = spend(state, ran?.by === 'reflex' ? 'reflex_effects' : 'effects', duration_ms)
  const ended = { ...spent, running, effects: { ...state.effects, [status]: state.effects[status] + 1 } }
  if (!ran?.block || status !== 'ok') return ended
  const { by, block } = ran
  const attempts = state.attempts.get(block.address) ?? 0
  const blocked = { ...ended, blocked: [...state.blocked, { ...block, by, scope, at, attempts }] }
  if (by === 'turn') return blocked
  return decide(blocked, { at, scope, status: 'result', window: 'reflex', blocked: [block.address], why: block.reason })
}

/** A run in shadow mode, or one that the chain held back, decides nothing. */
function runReflex(state: DemoState, entry: Entry<'reflex-fired' | 'reflex-passed'>): DemoState {
  if (entry.state !== 'active') return state
  const tally = countRun(state.reflexes[entry.reflex_id] ?? noReflexTally(), entry)
  return { ...state, reflexes: { ...state.reflexes, [entry.reflex_id]: tally } }
}

function decisionOf(scope: string, { at, status, result, error }: Entry<'turn-ended'>, window: number): Decision {
  const { blocked, summary } = fieldsOf(result)
  const addresses = Array.isArray(blocked) ? blocked.filter((one) => typeof one === 'string') : []
  return { at, scope, status, window, blocked: addresses, why: error ?? (typeof summary === 'string' ? summary : '') }
}

const fieldsOf = (value: unknown): Record<string, unknown> => (typeof value === 'object' && value !== null ? { ...value } : {})

const spend = (state: DemoState, on: keyof DemoState['spent_ms'], ms: number | null): DemoState => ({
  ...state,
  spent_ms: { ...state.spent_ms, [on]: state.spent_ms[on] + (ms ?? 0) },
})

const tally = (state: DemoState, scope: string, change: Partial<ScopeTally>): DemoState => ({
  ...state,
  scopes: { ...state.scopes, [scope]: { ...tallyOf(state, scope), ...change } },
})

type Counted = 'accepted' | 'ignored' | 'reflexed' | 'considered' | 'dead_lettered' | 'cancelled' | 'retried' | 'turns' | 'acted'
const add = (state: DemoState, scope: string, name: Counted): DemoState => tally(state, scope, { [name]: tallyOf(state, scope)[name] + 1 })
