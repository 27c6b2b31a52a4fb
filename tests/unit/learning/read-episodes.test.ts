import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LogEntry } from '../../../src/contract/log-entry.ts'
import type { RangeRecording } from '../../../src/contract/scope-api.ts'
import type { Event } from '../../../src/core/event.ts'
import type { Episode } from '../../../src/features/learning/episode.ts'
import { readEpisodes, type EpisodeSource } from '../../../src/features/learning/episodes/read.ts'
import { assertProperty } from '../../support/property.ts'

const START = Date.parse('2026-11-21T05:00:00.000Z')
const TURN_MS = 90_000
const BASIS = { agent: { name: 'guard', version: '3' }, deployment: null, settings: { goal_labels: [], consumer: 'turn' } }

const iso = (ms: number): string => new Date(ms).toISOString()

function eventOf(n: number, at: number): Event {
  const meta = { trace_id: `trace-${n}`, correlation_id: null, causation_id: null }
  const own = { type: `note.${n % 3}`, text: n % 2 === 0 ? `block 192.0.2.${n}` : 'hello' }
  return { id: `e${n}`, scope: 'a', source: `host:${n % 5}`, timestamp: iso(at), meta, ...own }
}

type Moment = { at: number; fields: Record<string, unknown>; event?: Event }

/** The log of a scope whose turns take a while: later events come meanwhile. */
function logOf(count: number, every_ms: number): { entries: LogEntry[]; events: { seq: number; event: Event }[] } {
  const moments: Moment[] = []
  let [held, from] = [1, 0]
  for (let n = 1; n <= count; n += 1) {
    const at = START + n * every_ms
    const event = eventOf(n, at)
    const head = { trace_id: event.meta.trace_id, parent_id: null, event_ids: [event.id], duration_ms: null }
    moments.push({
      at,
      event,
      fields: { ...head, span_id: `s${n}`, kind: 'event-accepted', event_type: event.type, source: event.source, basis: 'b' },
    })
    const begins = Math.max(from, at) + 1
    from = begins + TURN_MS
    const turn = { ...head, span_id: `t${n}`, turn_id: `t${n}` }
    const started = { kind: 'turn-started', agent: 'guard', attempts: 1, considered: [[n, n]], since: begins, basis: 'b' }
    // Other events may have come; the log says which ones the turn saw.
    const last = Math.min(count, Math.floor((begins - START) / every_ms))
    moments.push({ at: begins, fields: { ...turn, ...started, saw: { seqs: [[held, last]], count: last, scratch: { last: n - 1 } } } })
    const acts = n % 2 === 0
    const effect = { ...turn, span_id: `f${n}`, effect_id: `f${n}`, tool: 'block', idempotence_key: null }
    if (acts) {
      moments.push({
        at: begins + 1,
        fields: { ...effect, kind: 'effect-started', input: { address: `192.0.2.${n}` }, cause: { turn_id: `t${n}` } },
      })
      moments.push({ at: begins + 2, fields: { ...effect, kind: 'effect-ended', status: 'ok', output: {}, error: null } })
    }
    const usage = { input_tokens: 1, output_tokens: 1, cost_usd: 0, model_calls: 1 }
    const called = acts ? [{ act: 'call_tool', tool: 'block', idempotence_key: null, arguments_hash: '' }] : []
    const cleared = n % 4 === 0
    const ended = {
      kind: 'turn-ended',
      status: cleared ? 'result' : 'none',
      result: null,
      error: null,
      usage,
      scratch: { last: n },
      acts: called,
    }
    moments.push({ at: from, fields: { ...turn, ...ended, cleared: cleared ? 1 : 0, ...(cleared && { left: [[held, n]] }) } })
    if (cleared) held = n + 1
    moments.push({ at: from, fields: { ...head, span_id: `s${n}`, kind: 'event-ended', status: 'completed', outcome: { by: 'turn' } } })
  }
  const sorted = moments
    .map((moment, index) => ({ moment, index }))
    .sort((one, other) => one.moment.at - other.moment.at || one.index - other.index)
  const started = new Map<string, number>()
  const entries = sorted.map(({ moment: { at, fields } }, index) => {
    const seq = index + 1
    if (fields['kind'] === 'turn-started') started.set(String(fields['turn_id']), seq)
    return { ...fields, seq, at: iso(at), started_seq: started.get(String(fields['turn_id'])) } as unknown as LogEntry
  })
  return {
    entries,
    events: moments
      .flatMap(({ event }, index) => (event ? [{ seq: index, event }] : []))
      .map(({ event }, index) => ({ seq: index + 1, event })),
  }
}

type Gap = { from: number; to: number }

/** Serves it by pages, as a scope does. `gone`: entries that are not kept, or cannot be read. */
function sourceOf(
  { entries, events }: ReturnType<typeof logOf>,
  { page = 1000, gone, unavailable }: { page?: number; gone?: Gap; unavailable?: Gap } = {},
): EpisodeSource {
  const isGone = ({ seq }: LogEntry) => gone !== undefined && gone.from <= seq && seq <= gone.to
  return {
    page: async ({ since, after, limit }) => {
      const from = after ?? (entries.find(({ at }) => Date.parse(at) >= since)?.seq ?? entries.length) - 1
      const base = { agent: BASIS.agent, settings: BASIS.settings, parts: { b: BASIS } }
      const common = { scope: 'a', deployment: null, complete: true, ...base } as unknown as RangeRecording
      if (unavailable && unavailable.from <= from + 1 && from + 1 <= unavailable.to)
        return { ...common, entries: [], events: [], next: unavailable.to, unavailable: 'the file is damaged' }
      const kept = entries.filter(
        (entry) => entry.seq > from && !isGone(entry) && (!unavailable || entry.seq < unavailable.from || entry.seq > unavailable.to),
      )
      const some = kept
        .slice(0, Math.min(limit, page))
        .filter(({ seq }) => !unavailable || from >= unavailable.to || seq < unavailable.from)
      const last = some.at(-1)?.seq ?? from
      const ids = new Set(some.flatMap(({ event_ids }) => event_ids))
      const seen = some.flatMap((entry) => (entry.kind === 'turn-started' ? entry.saw.seqs.map(([, to]) => to) : []))
      const named = events.filter(({ seq, event }) => ids.has(event.id) || seen.some((to) => to - 10 < seq && seq <= to))
      return { ...common, entries: structuredClone(some), events: structuredClone(named), next: last < entries.length ? last : null }
    },
  }
}

const all = (source: EpisodeSource) => readEpisodes(source, { most: 1000 })

async function inSlices(source: EpisodeSource, most: number, most_entries: number): Promise<Episode[]> {
  const episodes: Episode[] = []
  let last = await readEpisodes(source, { most, most_entries })
  episodes.push(...last.episodes)
  while (last.more) {
    const { watermark: after_seq, lead } = last
    last = await readEpisodes(source, { after_seq, lead, most, most_entries })
    episodes.push(...last.episodes)
  }
  return episodes
}

describe('reading decisions', () => {
  test('gives each once and the same, however it is cut, with turns that are open at the cut', async () => {
    const log = logOf(60, 60_000)
    const { episodes, skipped } = await all(sourceOf(log))
    expect(skipped).toEqual([])
    expect(episodes.map(({ id }) => id)).toEqual(Array.from({ length: 60 }, (_, index) => `e${index + 1}`))
    expect(episodes[1]).toMatchObject({
      place: { agent: 'guard', agent_version: '3' },
      acts: [{ kind: 'tool', name: 'block', input: { address: '192.0.2.2' } }],
      saw: { event: { id: 'e2' }, recent_events: [{ id: 'e1' }, { id: 'e2' }], window: { '10m': { total: 2 }, '10s': { total: 1 } } },
    })
    expect(episodes[30]?.saw.window['10m'].total).toBe(11)
    // The turns on every fourth ended with a result, which took their events from the context.
    expect(episodes.map(({ left }) => left)).toEqual(Array.from({ length: 60 }, (_, index) => index % 4 === 3))
    const cuts = fc.tuple(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 300, max: 900 }), fc.integer({ min: 7, max: 400 }))
    await assertProperty(
      'learning/read-episodes',
      fc.asyncProperty(cuts, async ([most, most_entries, page]) => {
        expect(await inSlices(sourceOf(log, { page }), most, most_entries)).toEqual(episodes)
      }),
      { numRuns: 25 },
    )
  })

  test('counts those that half-deleted traces have lost, and continues after them', async () => {
    const log = logOf(60, 60_000)
    const { episodes } = await all(sourceOf(log))
    const read = await all(sourceOf(log, { gone: { from: 1, to: 100 } }))
    const lost = read.skipped.reduce((sum, { count }) => sum + count, 0)
    expect(read.episodes.length + lost).toBe(log.entries.filter(({ kind, seq }) => kind === 'turn-ended' && seq > 100).length)
    expect(read.skipped.map(({ reason }) => reason)).toContain('the ten minutes before it are not kept')
    expect(read.episodes).toEqual(episodes.slice(-read.episodes.length))
  })

  test('continues after a part that cannot be read, and says so', async () => {
    const log = logOf(60, 60_000)
    const { episodes } = await all(sourceOf(log))
    const read = await all(sourceOf(log, { unavailable: { from: 101, to: 150 } }))
    expect(read.skipped).toContainEqual({ reason: 'a part of the log cannot be read: the file is damaged', count: 1 })
    const ids = new Set(read.episodes.map(({ id }) => id))
    expect(read.episodes).toEqual(episodes.filter(({ id }) => ids.has(id)))
    expect(read.episodes.length).toBeGreaterThan(20)
  })
})
