import { DecisionContext } from '../core/decision-context.ts'
import type { Event } from '../core/event.ts'
import type { Database } from './database.ts'
import type { Stored } from './inbox.ts'

export type Seen = { context: DecisionContext; seqs: number[]; scratch: Record<string, unknown> }

/** Considered events beyond the limit leave in steps of this many, not one by one. */
const TRIM_STEP = 100

/**
 * The scope's DecisionContext. On disk it is the events marked `in_context` in order of acceptance (G2), and `scratch`; both survive eviction. In memory
 * it is the newest of them, about as many as the limit allows: filters and reflexes see those. A turn sees what it considers and what came before.
 */
export class WorkingMemory {
  readonly #database: Database
  readonly #scope: string
  readonly #now: () => number
  #limit: number
  #live: DecisionContext
  #seqs: number[] = []
  #count = 0

  constructor(database: Database, scope: string, now: () => number, limit: number) {
    this.#database = database
    this.#scope = scope
    this.#now = now
    this.#limit = limit
    this.#live = this.#load()
  }

  get live(): DecisionContext {
    return this.#live
  }

  get count(): number {
    return this.#count
  }

  resize(limit: number): void {
    if (limit === this.#limit) return
    this.#limit = limit
    this.#live = this.#load()
  }

  /** In order of acceptance, also where a retried event finds younger ones there already. */
  add({ seq, event }: Stored): void {
    this.#count += 1
    if (seq > (this.#seqs.at(-1) ?? 0)) {
      this.#seqs.push(seq)
      this.#live.add(event)
    } else {
      const place = this.#seqs.findIndex((other) => other > seq)
      this.#seqs.splice(place, 0, seq)
      this.#live.events.splice(place, 0, event)
    }
    // Room for what trim lets pile up, so that a turn's view is here and not on disk.
    if (this.#seqs.length > this.#limit + 2 * TRIM_STEP) {
      this.#seqs.shift()
      this.#live.events.shift()
    }
  }

  /** Makes durable that these are in the context. */
  keep(stored: readonly Stored[]): void {
    this.#database.all(
      'UPDATE events SET in_context = 1 WHERE seq IN (SELECT value FROM json_each(?))',
      JSON.stringify(stored.map(({ seq }) => seq)),
    )
  }

  /** A copy for one turn: it neither sees what comes later, nor changes what others see. */
  view(claimed: readonly Stored[]): Seen {
    const { events, seqs } =
      this.#count <= this.#seqs.length ? { events: this.#live.events, seqs: this.#seqs } : this.#upTo(claimed.at(-1)?.seq ?? 0)
    const scratch = structuredClone(this.#live.scratch)
    const { created_at, last_action_at } = this.#live
    const context = new DecisionContext({ scope: this.#scope, events: [...events], scratch, created_at, last_action_at, now: this.#now })
    return { context, seqs: [...seqs], scratch: structuredClone(scratch) }
  }

  /** After a result: what the turn saw leaves, but for events that still have no outcome and will be considered again. */
  clear(seqs: readonly number[]): number {
    const gone = this.#drop('seq IN (SELECT value FROM json_each(?))', JSON.stringify(seqs))
    this.#live.last_action_at = this.#now()
    this.#database.write('last_action_at', this.#live.last_action_at)
    return gone
  }

  /** Lets the oldest considered events go where the context has outgrown its limit. */
  trim(): number {
    if (this.#count <= this.#limit + TRIM_STEP) return 0
    return this.#drop(
      `seq IN (SELECT seq FROM events WHERE in_context = 1 AND status NOT IN ('pending', 'processing') ORDER BY seq LIMIT ?)`,
      this.#count - this.#limit,
    )
  }

  /** Takes over what a turn changed in its copy of the scratch, key by key, so that what others wrote meanwhile stays. */
  mergeScratch(before: Record<string, unknown>, after: Record<string, unknown>): void {
    const scratch = { ...this.#live.scratch }
    let changed = false
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const value = JSON.stringify(after[key])
      if (value === JSON.stringify(before[key])) continue
      changed = true
      if (value === undefined) delete scratch[key]
      else scratch[key] = JSON.parse(value)
    }
    if (!changed) return
    this.#live.scratch = scratch
    this.#database.write('scratch', scratch)
  }

  #drop(condition: string, parameter: string | number): number {
    const rows = this.#database.all<{ seq: number }>(
      `UPDATE events SET in_context = 0 WHERE in_context = 1 AND status NOT IN ('pending', 'processing') AND ${condition} RETURNING seq`,
      parameter,
    )
    const gone = new Set(rows.map(({ seq }) => seq))
    this.#count -= gone.size
    const kept = this.#seqs.map((seq) => !gone.has(seq))
    this.#live.events = this.#live.events.filter((_, index) => kept[index])
    this.#seqs = this.#seqs.filter((_, index) => kept[index])
    // Older events that had no place in memory have one now.
    if (this.#seqs.length < Math.min(this.#count, this.#limit)) this.#live = this.#load()
    return gone.size
  }

  #load(): DecisionContext {
    this.#count = this.#database.first<{ n: number }>('SELECT count(*) AS n FROM events WHERE in_context = 1')?.n ?? 0
    const { events, seqs } = this.#newest(this.#limit + 2 * TRIM_STEP, Number.MAX_SAFE_INTEGER)
    this.#seqs = seqs
    const created_at = this.#database.read<number | null>('created_at', null) ?? this.#now()
    const last_action_at = this.#database.read<number | null>('last_action_at', null)
    const scratch = this.#database.read<Record<string, unknown>>('scratch', {})
    return new DecisionContext({ scope: this.#scope, events, scratch, created_at, last_action_at, now: this.#now })
  }

  /** With a backlog, a turn sees up to the last event that it considers; the rest is for the next turn. */
  #upTo(seq: number): { events: Event[]; seqs: number[] } {
    return this.#newest(4 * this.#limit, seq)
  }

  #newest(limit: number, upTo: number): { events: Event[]; seqs: number[] } {
    const rows = this.#database
      .all('SELECT seq, payload FROM events WHERE in_context = 1 AND seq <= ? ORDER BY seq DESC LIMIT ?', upTo, limit)
      .toReversed()
    return { events: rows.map((row) => JSON.parse(String(row['payload'])) as Event), seqs: rows.map((row) => Number(row['seq'])) }
  }
}

/** Sorted numbers as ranges, for the log: `[1, 2, 3, 7]` is `[[1, 3], [7, 7]]`. */
export function toRanges(seqs: readonly number[]): [number, number][] {
  const ranges: [number, number][] = []
  for (const seq of seqs) {
    const last = ranges.at(-1)
    if (last && last[1] === seq - 1) last[1] = seq
    else ranges.push([seq, seq])
  }
  return ranges
}
