import type { LogEntry } from '../../../contract/log-entry.ts'
import {
  RECORDING_SCHEMA,
  equivalenceOf,
  type RangeProgress,
  type RangeReport,
  type ReplayMode,
  type ReplaySide,
  type Divergence,
  type ReplayExample,
} from '../contract/replay.ts'
import type { RangeRecording } from '../../../contract/scope-api.ts'
import { asRecorded } from '../given.ts'
import type { Recording } from '../recording.ts'
import { decideAgain } from '../replay.ts'
import { Comparison } from '../report.ts'
import { Source, type ReplayHost } from '../source.ts'
import { addedUsage } from '../../../traces/usage.ts'
import { aroundOf, type Resolved } from './what-if.ts'
import type { World } from './world.ts'

const MOST_EXAMPLES = 10
/** Bounds the memory: changes that differ in their paths are counted apart. */
const MOST_SHAPES = 500

type Effect = { change: 'appears' | 'vanishes'; span_id: string; act: string }
type Shape = { weight: number; example: ReplayExample; alike: number }

/** Collects the clearest changes of a range: one for each way in which decisions changed. */
class Examples {
  readonly #shapes = new Map<string, Shape>()

  add(entries: readonly LogEntry[], divergences: readonly Divergence[], effects: readonly Effect[]): void {
    if (divergences.length === 0) return
    const by_span = new Map(entries.map((entry) => [entry.span_id, entry]))
    const acting = new Map(effects.map((effect) => [effect.span_id, effect]))
    const counted = new Set<string>()
    for (const divergence of divergences) {
      const { span_id, kind } = divergence
      const entry = by_span.get(span_id)
      // A decision may differ in several places, the outermost first.
      if (!entry || counted.has(`${span_id} ${kind}`)) continue
      counted.add(`${span_id} ${kind}`)
      const { weight, why } = meaningOf(divergence, acting.get(span_id))
      const key = `${why} ${divergence.path} ${wordOf(divergence.recorded)} ${wordOf(divergence.replayed)}`
      const known = this.#shapes.get(key)
      if (known) known.alike += 1
      else if (this.#shapes.size < MOST_SHAPES) {
        const { trace_id, at, event_ids } = entry
        this.#shapes.set(key, { weight, alike: 1, example: { ...divergence, trace_id, at, event_id: event_ids[0] ?? null, why, alike: 1 } })
      }
    }
  }

  best(): ReplayExample[] {
    const ranked = [...this.#shapes.values()].toSorted((one, other) => other.weight - one.weight || other.alike - one.alike)
    return ranked.slice(0, MOST_EXAMPLES).map(({ example, alike }) => ({ ...example, alike }))
  }
}

/** The rank of a change by what the world outside would notice, with the reason. */
function meaningOf({ kind, path, recorded, replayed }: Divergence, effect: Effect | undefined): { weight: number; why: string } {
  if (effect && (kind === 'effect' || effect.act !== 'reply'))
    return { weight: 100, why: effect.change === 'appears' ? `${effect.act} would appear` : `${effect.act} would not have been` }
  if (kind === 'gate') return { weight: 90, why: `the gate would decide ${wordOf(replayed)} instead of ${wordOf(recorded)}` }
  if (kind === 'turn' && path === '') return { weight: 80, why: 'the turn would not start' }
  if (effect) return { weight: 70, why: effect.change === 'appears' ? 'a reply would appear' : 'a reply would not have been' }
  if (kind === 'overlap') return { weight: 60, why: 'the event would meet another overlap policy' }
  if (kind === 'turn' || kind === 'plan') return { weight: 50, why: `the ${kind} would end otherwise` }
  if (kind === 'filter' || kind === 'event') return { weight: 40, why: 'the event would be perceived otherwise' }
  if (kind === 'reflex') return { weight: 30, why: 'a reflex would decide otherwise' }
  return { weight: 10, why: `the ${kind} would differ` }
}

/** Values that are not words differ from decision to decision, and make no kind of their own. */
const wordOf = (value: unknown): string =>
  typeof value === 'string' && value.length <= 30 ? value : value === null ? 'nothing' : typeof value

/** A part ends where nothing is in flight: if a page has no such place, a longer one may. */
const PAGES = [1000, 5000] as const
const MOST_REASONS = 10

type RangeParts = {
  scope: string
  mode: ReplayMode
  since: number
  until: number
  /** The last entry that an earlier request has replayed. */
  after: number | null
  /** Entries after which the request ends with a cursor. */
  most_entries: number
  read: (after: number | null, limit: number) => Promise<RangeRecording>
  /** Adds the code and the manifests that entries name. */
  complete: (recording: RangeRecording) => Promise<Pick<Recording, 'programs' | 'manifests'>>
  resolve: (recording: RangeRecording) => Promise<Resolved | null>
  host: ReplayHost
  /** True once the time of the request is over. */
  isLate: () => boolean
}

/** Replays a range of a scope's log part by part, so that neither memory nor time grow with it. */
export async function* replayRange(parts: RangeParts): AsyncGenerator<RangeProgress, RangeReport> {
  const { since, until, most_entries, resolve, host, isLate } = parts
  const total = new Totals()
  let resolved: Resolved | null | undefined
  let world: World | undefined
  let after = parts.after
  for (;;) {
    const { page, entries, next } = await nextPart(parts, after)
    if (page.unavailable !== undefined) total.miss(page.unavailable)
    resolved = resolved === undefined ? await resolve(page) : resolved
    const inside = entries.filter(({ at }) => Date.parse(at) >= since)
    if (inside.length > 0) {
      const recording = await recordingOf(page, inside, parts)
      const around = resolved ? aroundOf(recording, resolved, host, world) : null
      world = around?.world
      const pinned = around ?? pinnedOf(recording, host)
      const sides = await decideAgain(pinned)
      const replayed = around ? around.side(sides.recorded, sides.replayed) : sides.replayed
      total.add(recording.entries, pinned.comparison, { recorded: sides.recorded, replayed, effects: around?.effects() ?? [] })
      yield total.progress
    }
    // A part that cannot be read has no entries.
    after = entries.at(-1)?.seq ?? next ?? after
    const is_over = next === null || Date.parse(entries.at(-1)?.at ?? '') >= until
    if (!is_over && total.entries < most_entries && !isLate()) continue
    return { ...total.report(parts, resolved ?? null), next_cursor: is_over ? null : String(after) }
  }
}

function pinnedOf(recording: Recording, host: ReplayHost) {
  const source = new Source(recording)
  return { source, host, given: asRecorded(source), comparison: new Comparison() }
}

async function recordingOf(page: RangeRecording, entries: LogEntry[], { complete }: RangeParts): Promise<Recording> {
  const named = await complete({ ...page, entries })
  return { ...page, ...named, entries, schema: RECORDING_SCHEMA, trace_id: '', settings_hash: '', sha256: '' }
}

type Part = { page: RangeRecording; entries: LogEntry[]; next: number | null }

/** Reads up to a place where nothing is in flight, else as much as fits. */
async function nextPart({ read, until }: RangeParts, after: number | null): Promise<Part> {
  for (const limit of PAGES) {
    const page = await read(after, limit)
    const { entries, next } = page
    const whole = wholeUntil(entries, { until, is_end: next === null })
    if (whole !== null)
      return { page, entries: entries.slice(0, whole), next: whole < entries.length ? (entries[whole - 1]?.seq ?? null) : next }
    if (limit === PAGES.at(-1) || entries.length === 0) return { page, entries, next }
  }
  throw new Error('a part of the log has a last page')
}

/**
 * The number of entries up to the last place where no turn, effect or run is in flight; up to the
 * first one after `until`, if there is one. Entries of one moment belong together.
 */
function wholeUntil(entries: readonly LogEntry[], { until, is_end }: { until: number; is_end: boolean }): number | null {
  const open = new Set<string>()
  let whole: number | null = null
  for (const [index, entry] of entries.entries()) {
    if (open.size === 0 && entry.at !== entries[index - 1]?.at) {
      if (Date.parse(entry.at) >= until) return index
      if (index > 0) whole = index
    }
    note(open, entry)
  }
  return is_end && !entries.some(({ at }) => Date.parse(at) >= until) ? entries.length : (whole ?? (is_end ? entries.length : null))
}

function note(open: Set<string>, entry: LogEntry): void {
  if (entry.kind === 'turn-started') open.add(entry.turn_id)
  if (entry.kind === 'turn-ended') open.delete(entry.turn_id)
  if (entry.kind === 'effect-started') open.add(entry.effect_id)
  if (entry.kind === 'effect-ended') open.delete(entry.effect_id)
  if (entry.kind === 'skill-started') open.add(String(entry['run_id']))
  if (entry.kind === 'skill-applied') open.delete(String(entry['run_id']))
}

type Sides = { recorded: ReplaySide; replayed: ReplaySide; effects: { change: 'appears' | 'vanishes'; span_id: string; act: string }[] }

const nothing = (): ReplaySide => ({
  usage: { input_tokens: 0, output_tokens: 0, cost_usd: 0, model_calls: 0 },
  effects: 0,
  duration_ms: 0,
})

/** The sums over all parts. */
class Totals {
  entries = 0
  #events = 0
  #at: string | null = null
  readonly #decisions: RangeReport['decisions'] = {}
  readonly #reasons = new Map<string, number>()
  /** Parts of the log that cannot be read, and what the first one lacks. */
  readonly #unread = { count: 0, detail: '' }
  readonly #effects = { appear: 0, vanish: 0 }
  readonly #examples = new Examples()
  #recorded = nothing()
  #replayed = nothing()

  get #sums() {
    const all = Object.values(this.#decisions)
    const of = (outcome: 'same' | 'changed' | 'unknown') => all.reduce((count, tally) => count + tally[outcome], 0)
    return { same: of('same'), changed: of('changed'), unknown: of('unknown') }
  }

  get progress(): RangeProgress {
    return { entries: this.entries, events: this.#events, ...this.#sums, at: this.#at }
  }

  /** Notes a part of the log that cannot be read. */
  miss(detail: string): void {
    this.#unread.count += 1
    this.#unread.detail ||= detail
  }

  add(entries: readonly LogEntry[], comparison: Comparison, { recorded, replayed, effects }: Sides): void {
    this.entries += entries.length
    this.#events += entries.filter(({ kind }) => kind === 'event-accepted').length
    this.#at = entries.at(-1)?.at ?? this.#at
    for (const [kind, tally] of Object.entries(comparison.decisions)) {
      const own = (this.#decisions[kind] ??= { same: 0, changed: 0, unknown: 0 })
      for (const outcome of ['same', 'changed', 'unknown'] as const) own[outcome] += tally[outcome]
    }
    for (const { reason } of comparison.unknown) this.#reasons.set(reason, (this.#reasons.get(reason) ?? 0) + 1)
    for (const { change } of effects) this.#effects[change === 'appears' ? 'appear' : 'vanish'] += 1
    this.#examples.add(entries, comparison.divergences, effects)
    const took = workedMs(entries)
    const saved = recorded.duration_ms - replayed.duration_ms
    this.#recorded = added(this.#recorded, { ...recorded, duration_ms: took })
    this.#replayed = added(this.#replayed, { ...replayed, duration_ms: Math.max(0, took - saved) })
  }

  report({ scope, mode, since, until }: RangeParts, resolved: Resolved | null): Omit<RangeReport, 'next_cursor'> {
    const { entries } = this
    const { count: unread, detail } = this.#unread
    const sums = { ...this.#sums, unknown: this.#sums.unknown + unread }
    const reasons = Array.from(this.#reasons, ([reason, count]) => ({ reason, count })).toSorted((one, other) => other.count - one.count)
    return {
      scope,
      mode,
      since: new Date(since).toISOString(),
      until: new Date(until).toISOString(),
      equivalent: equivalenceOf(sums),
      entries,
      events: this.#events,
      ...sums,
      decisions: this.#decisions,
      reasons: [...(unread > 0 ? [{ reason: `a part of the log cannot be read: ${detail}`, count: unread }] : []), ...reasons].slice(
        0,
        MOST_REASONS,
      ),
      effects: this.#effects,
      examples: this.#examples.best(),
      recorded: this.#recorded,
      replayed: this.#replayed,
      ...(resolved && { changes_hash: resolved.changes_hash }),
      ...(resolved?.live && { spent: resolved.live.spent }),
    }
  }
}

const workedMs = (entries: readonly LogEntry[]): number =>
  entries.reduce((ms, { kind, duration_ms }) => ms + (kind === 'turn-ended' || kind === 'action-ended' ? (duration_ms ?? 0) : 0), 0)

const added = (one: ReplaySide, other: ReplaySide): ReplaySide => ({
  usage: addedUsage(one.usage, other.usage),
  effects: one.effects + other.effects,
  duration_ms: one.duration_ms + other.duration_ms,
  ...(other.unanswered !== undefined && { unanswered: (one.unanswered ?? 0) + other.unanswered }),
})
