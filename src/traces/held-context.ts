import type { LogEntry, EntryOf } from '../contract/log-entry.ts'
import { placesIn } from './ranges.ts'

/** True if the entry has the whole context of its moment. */
export const isWhole = (entry: LogEntry): boolean =>
  (entry.kind === 'turn-started' && entry.saw.hidden === undefined) || (entry.kind === 'context-trimmed' && entry.kept !== undefined)

type Held = {
  seqs: Set<number>
  scratch: Record<string, unknown>
  last_action_at: number | null
  turns: Map<string, EntryOf<'turn-started'>>
}
export type Places = ReadonlyMap<string, number>
type Changes = { [Kind in LogEntry['kind']]?: (held: Held, entry: EntryOf<Kind>, places: number[]) => void }

/** The effect of entries on the context. `places` are the places of the entry's events. */
export const CHANGES: Changes = {
  'event-accepted'({ seqs }, { joined = true }, places) {
    if (joined) for (const seq of places) seqs.add(seq)
  },
  'event-joined'({ seqs }, _entry, places) {
    for (const seq of places) seqs.add(seq)
  },
  'event-ended'({ seqs }, { left, status }, places) {
    if (left || status === 'dead_lettered') for (const seq of places) seqs.delete(seq)
  },
  'scratch-set'(held, { key, value }) {
    held.scratch = { ...held.scratch, [key]: value }
  },
  'turn-started'(held, entry) {
    const { turn_id, saw, beside } = entry
    if (beside) return
    held.turns.set(turn_id, entry)
    held.scratch = saw.scratch as Held['scratch']
    held.last_action_at = saw.last_action_at ?? null
    if (saw.hidden === undefined) held.seqs = new Set(placesIn(saw.seqs))
  },
  'turn-ended'(held, { turn_id, status, cleared, left, scratch, at, duration_ms, beside }) {
    if (beside) return
    const { saw, since } = held.turns.get(turn_id) ?? {}
    held.scratch = scratch as Held['scratch']
    if (status === 'result') held.last_action_at = since === undefined ? Date.parse(at) : since + (duration_ms ?? 0)
    if (cleared > 0) for (const seq of placesIn(left ?? saw?.seqs ?? [])) held.seqs.delete(seq)
  },
  'context-trimmed'(held, { kept, scratch = held.scratch, last_action_at = held.last_action_at }) {
    if (kept) held.seqs = new Set(placesIn(kept))
    held.scratch = scratch as Held['scratch']
    held.last_action_at = last_action_at
  },
}

export function roll(held: Held, entry: LogEntry, places: Places): void {
  const change = CHANGES[entry.kind] as ((held: Held, entry: LogEntry, places: number[]) => void) | undefined
  change?.(
    held,
    entry,
    entry.event_ids.flatMap((id) => places.get(id) ?? []),
  )
  if (entry.kind === 'turn-ended') held.turns.delete(entry.turn_id)
}

export const nothingHeld = (): Held => ({ seqs: new Set(), scratch: {}, last_action_at: null, turns: new Map() })

/** Applies the entries in order. */
export function rolled(entries: readonly LogEntry[], places: Places): { seqs: number[] } & Pick<Held, 'scratch' | 'last_action_at'> {
  const held = nothingHeld()
  for (const entry of entries) roll(held, entry, places)
  return { ...held, seqs: [...held.seqs].sort((one, other) => one - other) }
}
