import type { RangeRecording, ScopeApi } from '../../../contract/scope-api.ts'
import { rangeRecording } from '../../../traces/recording-lines.ts'
import type { Episode } from '../episode.ts'
import { Contexts } from './contexts.ts'
import type { Correction } from './people.ts'
import { EpisodeReader, type LogPage, type Skipped } from './reader.ts'

/** The source of a scope's log, by pages as of `ScopeApi.recording`. */
export type EpisodeSource = {
  page: (request: { since: number; after: number | null; limit: number }) => Promise<LogPage & Pick<RangeRecording, 'next' | 'unavailable'>>
}

export type ReadOptions = {
  /** The watermark of the call before; 0 reads from the beginning. */
  after_seq?: number
  /** The mark of the call before. Unset: the call reads back some minutes, which may be too few. */
  lead?: number | undefined
  /** Episodes of one answer. A turn on several events is not split, so there may be a few more. */
  most?: number
  /** Entries that are read for one answer, which may then have fewer episodes. */
  most_entries?: number
  /** From the call before, in the same process: nothing is read twice. */
  reading?: LogReading | undefined
}

export type EpisodesRead = {
  episodes: Episode[]
  /** Judgements of decisions that an earlier call returned. */
  corrections: Correction[]
  /** Decisions of which no episode was made. */
  skipped: Skipped[]
  /** `after_seq` of the next call. */
  watermark: number
  /** The first entry that a call in another process has to read again: events were open. */
  lead: number
  /** False at the end of the log. */
  more: boolean
  reading: LogReading
}

/** The state that a call leaves to the next one in the same process. */
export type LogReading = { reader: EpisodeReader; from: number; rest: LogPage['entries']; next: number | null; watermark: number }

const PAGE = 1000
/** Before a watermark: the windows of events whose turns end after it, and their contexts. */
const LEAD_MS = 20 * 60_000
const LEAD_ENTRIES = 200
const MOST_ENTRIES = 50_000

/**
 * Reads decisions as episodes, oldest first. Without `reading`, it first reads the entries from
 * `lead` to the watermark again, from which it takes no episodes.
 */
export async function readEpisodes(
  source: EpisodeSource,
  { after_seq = 0, lead, most = 1000, most_entries = MOST_ENTRIES, reading }: ReadOptions = {},
): Promise<EpisodesRead> {
  const state = reading ?? (await begin(source, after_seq, lead))
  const episodes: Episode[] = []
  const reasons = new Map<string, number>()
  const skip = (reason: string) => void reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  let left = most_entries
  while (episodes.length < most && left > 0) {
    if (state.rest.length === 0) {
      if (state.next === null) break
      await turnPage(source, state, skip)
      continue
    }
    const entry = state.rest.shift()
    if (!entry) break
    const is_new = entry.seq > state.from
    if (is_new) left -= 1
    const found = state.reader.feed(entry, is_new ? skip : () => {})
    if (is_new) episodes.push(...found)
    state.watermark = Math.max(state.watermark, entry.seq)
  }
  const skipped = Array.from(reasons, ([reason, count]) => ({ reason, count }))
  const { watermark, reader } = state
  const corrections = reader.takeCorrections()
  const more = state.rest.length > 0 || state.next !== null
  return { episodes, corrections, skipped, watermark, lead: Math.min(reader.lead, watermark + 1), more, reading: state }
}

async function turnPage(source: EpisodeSource, state: LogReading, skip: (reason: string) => void): Promise<void> {
  const page = await source.page({ since: 0, after: state.next, limit: PAGE })
  if (page.unavailable !== undefined) skip(`a part of the log cannot be read: ${page.unavailable}`)
  state.reader.receive(page)
  state.rest = [...page.entries]
  state.next = page.next === state.next && page.entries.length === 0 ? null : page.next
}

async function begin(source: EpisodeSource, after_seq: number, from?: number): Promise<LogReading> {
  const lead = after_seq === 0 || from !== undefined ? { after: (from ?? 1) - 1, at: 0 } : await leadOf(source, after_seq)
  const page = await source.page({ since: 0, after: lead.after, limit: PAGE })
  const [first] = page.entries
  const is_gap = first !== undefined && first.seq > lead.after + 1
  const start = { seq: first?.seq ?? 1, at: is_gap || lead.at === 0 ? Date.parse(first?.at ?? '') : lead.at }
  const reader = new EpisodeReader(new Contexts(start))
  reader.receive(page)
  return { reader, from: after_seq, rest: [...page.entries], next: page.next, watermark: after_seq }
}

/** The place and the time from which the log is read again. */
async function leadOf(source: EpisodeSource, after_seq: number): Promise<{ after: number; at: number }> {
  const { entries } = await source.page({ since: 0, after: after_seq - 1, limit: 1 })
  const before = Math.max(0, after_seq - LEAD_ENTRIES)
  if (!entries[0] || before === 0) return { after: before, at: 0 }
  const at = Date.parse(entries[0].at) - LEAD_MS
  const early = await source.page({ since: at, after: null, limit: 1 })
  const first = early.entries[0]?.seq ?? after_seq
  return { after: Math.min(before, first - 1), at }
}

/** The log of a scope, with what retention has moved to the archive. */
export const scopeSource = (scope: Pick<ScopeApi, 'recording'>): EpisodeSource => ({
  page: (request) => rangeRecording(scope, { ...request, lean: true }),
})
