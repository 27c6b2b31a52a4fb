import { branchOf, madeCalls, type Branch } from './branches.ts'
import { closedPatterns, join, type FrequentSequence } from './prefix-span.ts'
import {
  callsOf,
  costOf,
  isSkill,
  meanOf,
  p95Of,
  sumOf,
  type Call,
  type Trace,
  type Occurrence,
  type CallLoop,
  type TracedAct,
} from './trace.ts'
import { isJsonFields, sameJson, type Json } from '../../../base/json.ts'

type List = { path: string; field: string | null; items: readonly Json[] }

/** Turns that must have made at least two calls for the items of a list before it counts as one. */
const LEAST_TURNS = 2
const MOST_LISTS = 50
const DEEPEST = 3
const PART = /^[\w-]{1,64}$/

/** Joins the calls that a turn made for each item of a list that an earlier call gave. */
function withLoops(turns: readonly (readonly Call[])[]): Call[][] {
  const counts = new Map<string, number>()
  for (const calls of turns) for (const key of keysIn(calls)) counts.set(key, (counts.get(key) ?? 0) + 1)
  const known = new Set(Array.from(counts).flatMap(([key, count]) => (count >= LEAST_TURNS ? [key] : [])))
  return known.size === 0 ? turns.map((calls) => [...calls]) : turns.map((calls) => folded(calls, known))
}

/** The loops of at least two calls in a turn. */
function keysIn(calls: readonly Call[]): Set<string> {
  const keys = new Set<string>()
  for (let at = 1; at < calls.length - 1; at += 1) {
    if (calls[at]?.symbol !== calls[at + 1]?.symbol) continue
    for (const { key, loop } of loopsAt(calls, at)) if (loop.calls.length > 1) keys.add(key)
  }
  return keys
}

function folded(calls: readonly Call[], known: ReadonlySet<string>): Call[] {
  const result: Call[] = []
  for (let at = 0; at < calls.length;) {
    const call = calls[at]
    if (!call) break
    const found = loopsAt(calls, at).find(({ key }) => known.has(key))
    result.push(found ? { symbol: found.key, act: together(call.act, found.loop) } : call)
    at += found?.loop.calls.length ?? 1
  }
  return result
}

/** All loops that begin here: their calls are as many as the list has items, and no more follow. */
function loopsAt(calls: readonly Call[], at: number): { key: string; loop: CallLoop }[] {
  const first = calls[at]
  if (first?.act.kind !== 'tool') return []
  const texts = Object.entries(first.act.input).filter(([, value]) => typeof value === 'string' || typeof value === 'number')
  return texts.flatMap(([argument]) => {
    const sources = new Map<string, Call>()
    for (const call of calls.slice(0, at)) if (call.symbol !== first.symbol) sources.set(call.symbol, call)
    return Array.from(sources.values()).flatMap((source) =>
      listsIn(source.act.output).flatMap(({ path, field, items }) => {
        const own = calls.slice(at, at + items.length).map(({ act }) => act)
        const next = calls[at + items.length]
        const isMade = items.every(
          (item, index) => calls[at + index]?.symbol === first.symbol && sameJson(own[index]?.input[argument], item),
        )
        if (!isMade || next?.symbol === first.symbol || !own.every((act) => sameRest(act, first.act, argument))) return []
        const key = `${first.symbol} for each ${[path, field].filter(Boolean).join(' ')} of ${source.symbol}, as ${argument}`
        return [{ key, loop: { argument, source: source.symbol, path, field, calls: own } }]
      }),
    )
  })
}

const sameRest = (one: TracedAct, other: TracedAct, argument: string): boolean =>
  sameJson({ ...one.input, [argument]: null }, { ...other.input, [argument]: null })

/** Joins calls to one with the costs of all, without the argument that differs. */
function together(first: TracedAct, loop: CallLoop): TracedAct {
  const { [loop.argument]: _item, ...input } = first.input
  return {
    ...first,
    input,
    output: loop.calls.map(({ output }) => output ?? null),
    ok: loop.calls.every(({ ok }) => ok),
    cost_usd: loop.calls.reduce((sum, { cost_usd }) => sum + cost_usd, 0),
    duration_ms: loop.calls.reduce((sum, { duration_ms }) => sum + duration_ms, 0),
    loop,
  }
}

/** The lists of texts and numbers in an output, and the fields that all items of a list have. */
function listsIn(output: unknown): List[] {
  const lists: List[] = []
  const isOne = (value: unknown): value is Json => typeof value === 'string' || typeof value === 'number'
  const add = (path: string, items: readonly unknown[]): void => {
    const [first] = items
    if (items.every(isOne)) lists.push({ path, field: null, items })
    else if (isJsonFields(first) && items.every(isJsonFields)) {
      for (const field of Object.keys(first)) {
        const own = items.map((item) => item[field])
        if (PART.test(field) && own.every(isOne)) lists.push({ path, field, items: own })
      }
    }
  }
  const visit = (value: unknown, path: readonly string[]): void => {
    if (lists.length >= MOST_LISTS) return
    if (Array.isArray(value) && value.length > 0 && path.length > 0) add(path.join('.'), value)
    if (!isJsonFields(value) || path.length >= DEEPEST) return
    for (const [name, inner] of Object.entries(value)) if (PART.test(name)) visit(inner, [...path, name])
  }
  visit(output, [])
  return lists
}

export type MiningLimits = {
  /** Share of the successful turns of a place that contain the pattern, at least. */
  support: number
  /** Number of turns that contain it, at least. */
  least_turns: number
  /** Share of its occurrences that ended well, in turns that did, at least. */
  success: number
  /** Cost of its tools as a share of what the turns with it cost, at most. */
  cost: number
}
export const MINING: MiningLimits = { support: 0.02, least_turns: 5, success: 0.95, cost: 0.6 }

/** Alone only with a branch after it. */
const SHORTEST = 1
const MOST_BRANCHES = 4
const LONGEST = 12
/** A pattern with less than this share of the turns that it needs is not worth a reason. */
const LEAST_REPORTED = 0.25
/** A pattern that occurs this often within a longer one adds nothing to it. */
const CONTAINED = 0.8

export type Pattern = {
  symbols: string[]
  /** For each symbol: what tells whether its call is made; null if it always is. */
  branches: (Branch | null)[]
  place: Pick<Trace['place'], 'project' | 'toolset' | 'repo'>
  /** The environments it occurred in. */
  envs: string[]
  /** In turns that ended well, with calls that did; the first of each turn. */
  occurrences: Occurrence[]
  /** The calls that came before it in its turns, by tool or `skill:ID`. */
  after: Record<string, number>
  support: number
  success: number
  baseline_usd: number
  /** Change of cost and of 95th-percentile latency against whole turns; -0.4 is 40 % less. */
  delta_cost: number
  delta_p95: number
}
type RejectedPattern = { symbols: string[]; turns: number; reason: string }
export type Transition = { from: string; to: string; count: number }
type MinedPatterns = { patterns: Pattern[]; rejected: RejectedPattern[]; transitions: Transition[] }

/**
 * Sequences of calls that the slow path repeats, by place. The same traces give the same result.
 */
export function mine(traces: readonly Trace[], limits: MiningLimits = MINING, trusted: ReadonlySet<string> = new Set()): MinedPatterns {
  const ordered = Array.from(traces)
    .sort((one, other) => one.at - other.at || compare(one.trace_id, other.trace_id))
    .map((trace): Turn => ({ trace, turn_usd: costOf(trace), calls: callsOf(trace) }))
  const groups = Map.groupBy(ordered, ({ trace: { place } }) =>
    JSON.stringify([place.project ?? null, place.toolset ?? null, place.repo ?? null]),
  )
  const mined = Array.from(groups.values(), (group) => mineGroup(group, { limits, trusted }))
  return {
    patterns: mined.flatMap(({ patterns }) => patterns).sort(bySize),
    rejected: mined.flatMap(({ rejected }) => rejected).sort((one, other) => other.turns - one.turns || bySymbols(one, other)),
    transitions: transitionsOf(ordered),
  }
}

type Turn = { trace: Trace; turn_usd: number; calls: readonly Call[] }

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0)
const bySymbols = (one: { symbols: string[] }, other: { symbols: string[] }): number =>
  compare(one.symbols.join('\n'), other.symbols.join('\n'))
const bySize = (one: Pattern, other: Pattern): number => other.occurrences.length - one.occurrences.length || bySymbols(one, other)

const nameOf = ({ act, symbol }: Call): string => (act.kind === 'skill' ? symbol : act.name)

/** The number of times that each call followed another one, in turns that ended well. */
function transitionsOf(turns: readonly Turn[]): Transition[] {
  const counts = new Map<string, Map<string, number>>()
  for (const { trace, calls } of turns) {
    if (trace.outcome !== 'ok') continue
    const names = calls.map(nameOf)
    for (const [index, to] of names.entries()) {
      const from = names[index - 1]
      if (from === undefined) continue
      const row = counts.get(from) ?? new Map<string, number>()
      counts.set(from, row.set(to, (row.get(to) ?? 0) + 1))
    }
  }
  return Array.from(counts)
    .flatMap(([from, row]) => Array.from(row, ([to, count]): Transition => ({ from, to, count })))
    .sort((one, other) => other.count - one.count || compare(one.from, other.from) || compare(one.to, other.to))
}

type Rules = { limits: MiningLimits; trusted: ReadonlySet<string> }
type Group = Rules & { turns: readonly Turn[]; names: string[]; good: number }
type MinedPattern = { symbols: string[]; pattern: Pattern; reason: string | null }

function mineGroup(unfolded: readonly Turn[], rules: Rules): Pick<MinedPatterns, 'patterns' | 'rejected'> {
  const { limits } = rules
  const folded = withLoops(unfolded.map(({ calls }) => calls))
  const numbers = new Map<string, number>()
  const numberOf = ({ symbol }: Call): number => {
    const number = numbers.get(symbol) ?? numbers.size
    numbers.set(symbol, number)
    return number
  }
  const turns = unfolded.map((turn, index) => ({ ...turn, calls: folded[index] ?? [] }))
  const joined = join(turns.map(({ calls }) => calls.map(numberOf)))
  const good = turns.filter(({ trace }) => trace.outcome === 'ok').length
  const group = { ...rules, turns, names: [...numbers.keys()], good }
  const least_sequences = Math.max(2, Math.ceil(Math.max(limits.least_turns, limits.support * good) * LEAST_REPORTED))
  const all = closedPatterns(joined, { least_sequences, shortest: SHORTEST, longest: LONGEST }).map((found) => {
    const places = found.at.map((at): Place => {
      const sequence = joined.sequence[at] ?? 0
      return { sequence, from: at - (joined.starts[sequence] ?? 0) }
    })
    return judge(found, places, group)
  })
  const judged = all.filter(
    ({ symbols, pattern }) => symbols.length > 1 && !all.some((whole) => whole.reason === null && isBranchOf(pattern, whole.pattern)),
  )
  const kept = withoutContained(judged.filter(({ reason }) => reason === null))
  return {
    patterns: kept.filter(({ reason }) => reason === null).map(({ pattern }) => pattern),
    rejected: [...judged.filter(({ reason }) => reason !== null), ...kept].flatMap(({ symbols, pattern, reason }) =>
      reason === null ? [] : [{ symbols, turns: pattern.occurrences.length, reason }],
    ),
  }
}

type Place = { sequence: number; from: number }

function judge(found: FrequentSequence, places: readonly Place[], { turns, names, good, limits, trusted }: Group): MinedPattern {
  const symbols = found.symbols.map((number) => names[number] ?? '')
  const well = places.flatMap(({ sequence, from }): (Occurrence & { sequence: number })[] => {
    const turn = turns[sequence]
    if (turn?.trace.outcome !== 'ok') return []
    const calls = turn.calls.slice(from, from + symbols.length).map(({ act }) => act)
    const previous = turn.calls[from - 1]
    const before = previous ? nameOf(previous) : null
    const next = turn.calls[from + symbols.length] ?? null
    return calls.every((call) => call.ok) ? [{ trace: turn.trace, turn_usd: turn.turn_usd, calls, before, next, sequence }] : []
  })
  const all = well.filter(({ sequence }, index) => sequence !== well[index - 1]?.sequence)
  const occurrences = withoutCrowding(all, trusted)
  const pattern = measured(withBranches(symbols, { occurrences, limits }), {
    support: occurrences.length / Math.max(1, good),
    success: well.length / places.length,
  })
  const reason = refusal(pattern, limits)
  const crowded = all.length - occurrences.length
  if (reason === null || crowded === 0) return { symbols: pattern.symbols, pattern, reason }
  return { symbols: pattern.symbols, pattern, reason: `${reason}; ${crowded} more are of senders that have more than a third` }
}

const LARGEST_SHARE = 1 / 3

/**
 * The occurrences that count, the latest of each sender: one who is not trusted has at most a third
 * of them, and could otherwise teach any sequence.
 */
function withoutCrowding<One extends Occurrence>(all: readonly One[], trusted: ReadonlySet<string>): One[] {
  const groups = Map.groupBy(all, ({ trace: { source } }) => (source === undefined || trusted.has(source) ? null : source))
  const own = groups.get(null)?.length ?? 0
  const others = Array.from(groups).flatMap(([source, { length }]) => (source === null ? [] : [length]))
  const countWith = (most: number): number => others.reduce((sum, count) => sum + Math.min(count, most), own)
  let most = Math.max(0, ...others)
  while (most > 0 && most > countWith(most) * LARGEST_SHARE) most -= 1
  const left = new Map(Array.from(groups, ([source]) => [source, source === null ? Infinity : most]))
  return all
    .toReversed()
    .filter(({ trace: { source } }) => {
      const key = source === undefined || trusted.has(source) ? null : source
      const rest = left.get(key) ?? 0
      left.set(key, rest - 1)
      return rest > 0
    })
    .toReversed()
}

type Branched = Pick<Pattern, 'symbols' | 'branches' | 'occurrences'>

/** With the calls that some of its turns made next, where an output tells which of them. */
function withBranches(symbols: string[], { occurrences, limits }: { occurrences: Occurrence[]; limits: MiningLimits }): Branched {
  const calls = occurrences.map((one) => one.calls)
  const follows = Map.groupBy(occurrences, ({ next }) => (next?.act.kind === 'tool' && next.act.ok ? next.symbol : null))
  const told = Array.from(follows).flatMap(([symbol, { length }]) => {
    if (symbol === null || length < limits.least_turns || occurrences.length - length < limits.least_turns) return []
    const branch = branchOf(
      calls,
      occurrences.map(({ next }) => next?.symbol === symbol),
    )
    return branch ? [{ symbol, branch }] : []
  })
  const taken = told.sort((one, other) => compare(one.symbol, other.symbol)).slice(0, MOST_BRANCHES)
  return {
    symbols: [...symbols, ...taken.map(({ symbol }) => symbol)],
    branches: [...symbols.map(() => null), ...taken.map(({ branch }) => branch)],
    occurrences: occurrences.map((one) => ({
      ...one,
      calls: [...one.calls, ...taken.map(({ symbol }) => (one.next?.symbol === symbol ? one.next.act : null))],
    })),
  }
}

/** True for the calls of a pattern with branches that this one has without a condition. */
const isBranchOf = ({ symbols, branches }: Pattern, whole: Pattern): boolean => {
  const own = whole.branches.filter((branch) => branch === null).length
  const rest = whole.symbols.slice(own)
  return (
    branches.every((branch) => branch === null) &&
    symbols.length === own + 1 &&
    rest.includes(symbols[own] ?? '') &&
    symbols.slice(0, own).every((symbol, index) => symbol === whole.symbols[index])
  )
}

function measured({ symbols, branches, occurrences }: Branched, shares: Pick<Pattern, 'support' | 'success'>): Pattern {
  const { project, toolset, repo } = occurrences[0]?.trace.place ?? {}
  const turns = occurrences.map(({ trace }) => trace)
  const baseline_usd = meanOf(occurrences.map(({ turn_usd }) => turn_usd))
  const cost = meanOf(occurrences.map((one) => sumOf(madeCalls(one).map(({ cost_usd }) => cost_usd))))
  const latency = p95Of(occurrences.map((one) => sumOf(madeCalls(one).map(({ duration_ms }) => duration_ms))))
  const whole = p95Of(turns.map(({ usage }) => usage.duration_ms))
  return {
    symbols,
    branches,
    place: { ...(project !== undefined && { project }), ...(toolset !== undefined && { toolset }), ...(repo !== undefined && { repo }) },
    envs: Array.from(new Set(turns.flatMap(({ place: { env = [] } }) => env))).sort(),
    occurrences,
    after: precedingCalls(occurrences),
    ...shares,
    baseline_usd,
    delta_cost: change(cost, baseline_usd),
    delta_p95: change(latency, whole),
  }
}

const MOST_PRECEDING = 16

function precedingCalls(occurrences: readonly Occurrence[]): Record<string, number> {
  const groups = Map.groupBy(occurrences, ({ before }) => before)
  const counts = Array.from(groups).flatMap(([name, { length }]) => (name === null ? [] : [[name, length] as const]))
  return Object.fromEntries(counts.sort(([one, n], [other, m]) => m - n || compare(one, other)).slice(0, MOST_PRECEDING))
}

const change = (now: number, before: number): number => (before === 0 ? 0 : now / before - 1)

const percent = (share: number): string => `${Math.round(share * 1000) / 10} %`

function refusal(pattern: Pattern, limits: MiningLimits): string | null {
  const { symbols, occurrences, support, success, baseline_usd, delta_cost } = pattern
  if (new Set(symbols).size === 1) return 'it only repeats one call'
  if (occurrences.length < limits.least_turns)
    return `${occurrences.length} successful turns contain it: at least ${limits.least_turns} must`
  if (support < limits.support) return `${percent(support)} of the successful turns contain it: at least ${percent(limits.support)} must`
  if (success < limits.success) return `${percent(success)} of its occurrences ended well: at least ${percent(limits.success)} must`
  if (baseline_usd > 0 && 1 + delta_cost > limits.cost)
    return `its tools cost ${percent(1 + delta_cost)} of what the turns cost: at most ${percent(limits.cost)} may`
  return symbols.some(isSkill) ? 'it runs skills, and a plan can run tools only' : null
}

/** Refuses patterns that occur mostly within a longer one that was kept. */
function withoutContained(kept: readonly MinedPattern[]): MinedPattern[] {
  return kept.map((judged) => {
    const inner = `\n${judged.symbols.join('\n')}\n`
    const longer = kept.find(
      ({ symbols, pattern }) =>
        symbols.length > judged.symbols.length &&
        `\n${symbols.join('\n')}\n`.includes(inner) &&
        pattern.occurrences.length >= CONTAINED * judged.pattern.occurrences.length,
    )
    return longer ? { ...judged, reason: `it is part of ${longer.symbols.length} calls that mostly contain it` } : judged
  })
}
