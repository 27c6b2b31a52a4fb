import type { EntryKind, LogEntry, EntryOf } from '../../src/contract/log-entry.ts'
import type { ScopeState } from '../../src/contract/scope.ts'
import { countSample, emptyHistogram, percentiles } from '../../src/reflexes/metrics.ts'
import type { AuthLog } from './read-log.ts'

/** A pending approval, as the API lists it. */
export type WaitingApproval = {
  id: string
  scope: string
  skill_id: string
  inputs: Record<string, unknown>
  why: string
  expires_at: string
}
export type DemoDeadLetter = { id: string; scope: string | null; event_id: string | null; error: string; attempts: number }
type DemoDecider = 'reflex' | 'turn'
/** `attempts`: failed logins from the address in the whole log. */
export type Block = { address: string; reason: string; by: DemoDecider; scope: string; at: string; attempts: number }
/** The demo's own time in ms. */
type Times = { start: number; send: number; dead_letter: number; all: number }
export type DemoOutcome = {
  log: AuthLog
  /** The whole logs of the log's scopes. */
  logs: ReadonlyMap<string, readonly LogEntry[]>
  speed: number | null
  scopes: readonly ScopeState[]
  dead_letters: readonly DemoDeadLetter[]
  approvals: readonly WaitingApproval[]
  /** Time of the first request, in ms. */
  first_at: number
  times: Times
}
export type DemoSummary = ReturnType<typeof summarise>

type Placed<Kind extends EntryKind> = EntryOf<Kind> & { scope: string }

/**
 * The results of the demo. Counts of events are the scopes' own counters; decisions and durations
 * come from their logs. `times_ms.work` lasts from the first request to the last outcome.
 */
export function summarise({ log, logs, speed, scopes, dead_letters, approvals, first_at, times }: DemoOutcome) {
  const entries = Array.from(logs).flatMap(([scope, all]) => all.map((entry) => ({ ...entry, scope })))
  entries.sort((one, other) => Date.parse(one.at) - Date.parse(other.at))
  const of = <Kind extends EntryKind>(...kinds: Kind[]) => {
    const isOne = (entry: { kind: EntryKind }): entry is Placed<Kind> => kinds.some((kind) => kind === entry.kind)
    return entries.filter(isOne)
  }
  const ends = of('event-ended')
  const by_reflex = ends.filter(({ status, outcome }) => status === 'completed' && outcome.by === 'reflex').length
  const turns = of('turn-ended')
  const acts = effects({ started: of('effect-started'), ended: of('effect-ended') }, log.attempts)
  const windows = of('turn-started').map(({ saw }) => saw.count)
  const spent_ms = { turns: lasted(turns), model: lasted(of('model-called')), ...acts.spent_ms }
  const events = eventsOf(scopes, by_reflex)
  const work = Math.max(0, Date.parse(ends.at(-1)?.at ?? '') - first_at || 0)
  return {
    ok: true as const,
    file: log.name,
    lines: { total: log.events.length, sent: log.events.length, left_out: log.left_out },
    model: modelOf(of('model-called')),
    events,
    decisions: decisionsOf(by_reflex, turns),
    // A run in shadow mode, or one that the chain held back, decides nothing.
    reflexes: grouped(
      of('reflex-fired', 'reflex-passed').filter(({ state }) => state === 'active'),
      ({ reflex_id }) => reflex_id,
      reflexFigures,
    ),
    turns: {
      started: windows.length,
      ...statuses(turns),
      smallest_window: windows.length > 0 ? Math.min(...windows) : 0,
      largest_window: Math.max(0, ...windows),
    },
    effects: acts.counts,
    skills: skillsOf(of('skill-applied', 'approval-requested', 'skill-refused', 'skill-decided')),
    approvals: approvals.map(({ id, scope, skill_id, inputs, why, expires_at }) => ({ id, scope, skill_id, inputs, why, expires_at })),
    blocked: acts.blocked,
    blocked_by: { reflex: addressesBy(acts.blocked, 'reflex'), turn: addressesBy(acts.blocked, 'turn') },
    /** The reply of the last turn that acted; null if none did. */
    said: turns.flatMap(({ status, result }) => (status === 'result' ? (textOf(result, 'summary') ?? []) : [])).at(-1) ?? null,
    dead_letters,
    events_per_second: work > 0 ? Math.round((events.accepted * 1000) / work) : 0,
    /** Requested lines per second; null for no limit. */
    speed,
    times_ms: {
      start: Math.round(times.start),
      send: Math.round(times.send),
      work,
      dead_letter: Math.round(times.dead_letter),
      all: Math.round(times.all),
      ...spent_ms,
    },
    scopes: scopes.map(({ scope, agent, counters }) => ({ scope, agent, counters })),
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const lasted = (entries: readonly Pick<LogEntry, 'duration_ms'>[]): number => sum(entries.map(({ duration_ms }) => duration_ms ?? 0))

const grouped = <Item, Figures>(items: readonly Item[], key: (item: Item) => string, figures: (items: readonly Item[]) => Figures) =>
  Object.fromEntries(Array.from(Map.groupBy(items, key), ([name, group]) => [name, figures(group)]))

function textOf(value: unknown, name: string): string | null {
  const field: unknown = typeof value === 'object' && value !== null ? Object.entries(value).find(([key]) => key === name)?.[1] : null
  return typeof field === 'string' && field !== '' ? field : null
}

function eventsOf(scopes: readonly ScopeState[], by_reflex: number) {
  const counted = (name: keyof ScopeState['counters']) => sum(scopes.map(({ counters }) => counters[name]))
  return {
    accepted: counted('accepted'),
    ignored: counted('ignored'),
    by_reflex,
    by_turn: counted('completed') - by_reflex,
    dead_lettered: counted('dead_lettered'),
    cancelled: counted('cancelled'),
    retried: counted('retried'),
    duplicates: counted('duplicates'),
  }
}

/** `without_model`: neither a model nor its offline substitute was called. */
function decisionsOf(by_reflex: number, turns: readonly EntryOf<'turn-ended'>[]) {
  const decided = turns.filter(({ status }) => status === 'result' || status === 'none')
  const without = decided.filter(({ usage }) => usage.model_calls === 0)
  return {
    all: by_reflex + decided.length,
    by_reflex,
    by_turn: decided.length,
    without_model: by_reflex + without.length,
  }
}

/** An unknown price makes the cost unknown, not zero. */
function modelOf(calls: readonly EntryOf<'model-called'>[]) {
  const name = calls.at(-1)?.model ?? 'offline'
  const asked = name !== 'offline'
  const costs = calls.map(({ usage }) => usage.cost_usd)
  return {
    name,
    asked,
    note: asked ? 'a language model answered' : 'an offline stand-in answered: rules, no network',
    calls: calls.length,
    failed: calls.filter(({ status }) => status === 'failed').length,
    input_tokens: sum(calls.map(({ usage }) => usage.input_tokens)),
    output_tokens: sum(calls.map(({ usage }) => usage.output_tokens)),
    cost_usd: costs.includes(null) ? null : sum(costs.map((cost) => cost ?? 0)),
  }
}

function statuses(turns: readonly EntryOf<'turn-ended'>[]) {
  const ended = { acted: 0, none: 0, failed: 0, other: 0 }
  for (const { status } of turns)
    ended[status === 'result' ? 'acted' : status === 'none' ? 'none' : status === 'failed' || status === 'timeout' ? 'failed' : 'other'] +=
      1
  return ended
}

/**
 * `passed`: it left the event to the slow path; `troubled`: it failed or was held back. The clock
 * has milliseconds: a run is logged as 0 or 1,000, so the mean says more than the median.
 */
function reflexFigures(runs: readonly EntryOf<'reflex-fired' | 'reflex-passed'>[]) {
  const duration_us = emptyHistogram()
  const fuel = emptyHistogram()
  for (const run of runs) {
    countSample(duration_us, run.duration_us)
    countSample(fuel, run.fuel)
  }
  const fired = runs.filter(({ kind }) => kind === 'reflex-fired').length
  return {
    fired,
    passed: runs.length - fired,
    troubled: runs.filter((run) => run.kind === 'reflex-passed' && run.reason !== 'null').length,
    mean_us: Math.round(sum(runs.map((run) => run.duration_us)) / runs.length),
    median_us: percentiles(duration_us).p50,
    median_fuel: percentiles(fuel).p50,
  }
}

type Effects = { started: readonly Placed<'effect-started'>[]; ended: readonly Placed<'effect-ended'>[] }

/** An address counts as blocked when the effect has ended, whoever requested it. */
function effects({ started, ended }: Effects, attempts: ReadonlyMap<string, number>) {
  const starts = new Map(started.map((entry) => [entry.effect_id, entry]))
  const counts = { started: started.length, ok: 0, failed: 0, unknown: 0, reused: 0 }
  const spent_ms = { effects: 0, reflex_effects: 0 }
  const blocked: Block[] = []
  for (const { effect_id, status, duration_ms, scope, at } of ended) {
    const start = starts.get(effect_id)
    const by = start && 'by' in start.cause && start.cause.by.startsWith('reflex:') ? 'reflex' : 'turn'
    counts[status] += 1
    spent_ms[by === 'reflex' ? 'reflex_effects' : 'effects'] += duration_ms ?? 0
    const address = textOf(start?.input, 'address')
    const reason = textOf(start?.input, 'reason')
    if (start?.tool !== 'block' || status !== 'ok' || address === null || reason === null) continue
    blocked.push({ address, reason, by, scope, at, attempts: attempts.get(address) ?? 0 })
  }
  return { counts, spent_ms, blocked }
}

/** The number of addresses blocked by one of the two; the first to block counts. */
const addressesBy = (blocked: readonly Block[], by: DemoDecider): number =>
  Array.from(Map.groupBy(blocked, ({ address }) => address).values()).filter(([first]) => first?.by === by).length

const REFUSED = new Set(['refused', 'deny', 'clarify', 'needs_promotion'])

/** Results of proposals, by skill id. Entries that end no proposal are not counted. */
function skillsOf(entries: readonly EntryOf<'skill-applied' | 'approval-requested' | 'skill-refused' | 'skill-decided'>[]) {
  return grouped(
    entries.filter((entry) => skillEnd(entry) !== null),
    (entry) => String(entry['skill_id']),
    (group) => {
      const tally = { ran: 0, failed: 0, refused: 0, to_approve: 0 }
      for (const end of group.map(skillEnd)) if (end !== null) tally[end] += 1
      return tally
    },
  )
}

function skillEnd(entry: LogEntry): 'ran' | 'failed' | 'refused' | 'to_approve' | null {
  if (entry.kind === 'skill-applied') return entry['status'] === 'ok' || entry['status'] === 'reused' ? 'ran' : 'failed'
  if (entry.kind === 'approval-requested') return 'to_approve'
  if (entry.kind === 'skill-refused') return 'refused'
  return entry.kind === 'skill-decided' && REFUSED.has(textOf(entry['decision'], 'verdict') ?? '') ? 'refused' : null
}
