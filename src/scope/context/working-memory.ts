import { DecisionContext } from '../../core/decision-context.ts'
import type { Event } from '../../core/event.ts'
import type { Act } from '../../contract/reflex.ts'
import { byteLength } from '../../base/byte-length.ts'
import { limits } from '../../base/limits.ts'
import { scopeHead } from '../spans.ts'
import type { Database } from '../database.ts'
import type { Claimed, Stored } from '../inbox/event-row.ts'
import type { Unit } from '../unit.ts'

export type Seen = { context: DecisionContext; seqs: number[]; scratch: Record<string, unknown> }

type Parts = { database: Database; scope: string; created_at: number; now: () => number; limit: number }

/** Considered events beyond the limit leave in steps of this many, not one by one. */
const TRIM_STEP = 100
const LONGEST_ACT = 1000

/**
 * The scope's DecisionContext. On disk it is the events marked `in_context` in order of acceptance (G2), and `scratch`; both survive eviction. In memory
 * it is the newest of them, about as many as the limit allows: filters and reflexes see those. A turn sees what it considers and what came before.
 */
export class WorkingMemory {
  readonly #database: Database
  readonly #scope: string
  readonly #created_at: number
  readonly #now: () => number
  #limit: number
  #live: DecisionContext
  #seqs: number[] = []
  #sizes: number[] = []
  #size = 0
  #count = 0

  constructor({ database, scope, created_at, now, limit }: Parts) {
    this.#database = database
    this.#scope = scope
    this.#created_at = created_at
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
  add({ seq, event, text }: Stored): void {
    this.#count += 1
    const bytes = byteLength(text)
    this.#size += bytes
    const later = this.#seqs.findLastIndex((other) => other < seq) + 1
    this.#seqs.splice(later, 0, seq)
    this.#sizes.splice(later, 0, bytes)
    this.#live.events.splice(later, 0, event)
    // Room for what trim lets pile up, so that a turn's view is here and not on disk; but never more than memory can hold.
    while (this.#seqs.length > this.#limit + 2 * TRIM_STEP || (this.#size > limits.context_bytes && this.#seqs.length > 1)) {
      this.#seqs.shift()
      this.#live.events.shift()
      this.#size -= this.#sizes.shift() ?? 0
    }
  }

  setScratch(unit: Unit, key: string, value: unknown): void {
    this.#live.scratch = { ...this.#live.scratch, [key]: value }
    unit.write('scratch', this.#live.scratch)
  }

  /** An event of the context, where memory holds it. */
  find(seq: number): Event | undefined {
    let [low, high] = [0, this.#seqs.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#seqs[middle] ?? 0) < seq) low = middle + 1
      else high = middle
    }
    return this.#seqs[low] === seq ? this.#live.events[low] : undefined
  }

  /** The newest of the context before the place `before`, oldest first: at most `limit`, and about a page's bytes. */
  page(limit: number, before = Number.MAX_SAFE_INTEGER): { events: Event[]; first: number; more: boolean } {
    const rows = this.#newest(limit, before - 1, limits.page_bytes)
    const first = rows[0]?.seq ?? 0
    const older = this.#database.first('SELECT 1 FROM events WHERE in_context = 1 AND seq < ? LIMIT 1', first)
    return { events: rows.map(({ event }) => event), first, more: older !== undefined }
  }

  /** A copy for one turn: it neither sees what comes later, nor changes what others see. */
  view(claimed: readonly Claimed[]): Seen {
    const whole = this.#count <= this.#seqs.length
    const { events, seqs } = whole ? { events: this.#live.events, seqs: this.#seqs } : this.#shown(claimed)
    const scratch = structuredClone(this.#live.scratch)
    const { created_at, last_action_at } = this.#live
    const context = new DecisionContext({ scope: this.#scope, events: [...events], scratch, created_at, last_action_at, now: this.#now })
    return { context, seqs: [...seqs], scratch: structuredClone(scratch) }
  }

  /** After a result: what the turn saw leaves, but for events that still have no outcome and will be considered again. */
  clear(unit: Unit, seqs: readonly number[]): number {
    const gone = this.#drop(unit, 'seq IN (SELECT value FROM json_each(?))', JSON.stringify(seqs))
    this.#live.last_action_at = unit.now
    unit.write('last_action_at', this.#live.last_action_at)
    return gone
  }

  /** What was given up or cancelled leaves: it must not be thought about again in the company of what comes next. */
  leave(unit: Unit, seqs: readonly number[]): void {
    this.#drop(unit, 'seq IN (SELECT value FROM json_each(?))', JSON.stringify(seqs))
  }

  /** Lets go what was accepted before `before` (ms) and considered. */
  expire(unit: Unit, before: number): void {
    this.#drop(unit, 'accepted_at < ?', before)
  }

  /** A copy that filters and reflexes may be shown, and that a decision may change. */
  copy(): DecisionContext {
    const { events, scratch, created_at, last_action_at } = this.#live
    return new DecisionContext({ scope: this.#scope, events: [...events], scratch, created_at, last_action_at, now: this.#now })
  }

  /** Drops the oldest considered events from a context that has outgrown its limit. */
  trim(unit: Unit): void {
    if (this.#count <= this.#limit + TRIM_STEP) return
    const count = this.#drop(
      unit,
      `seq IN (SELECT seq FROM events WHERE in_context = 1 AND status NOT IN ('pending', 'processing') ORDER BY seq LIMIT ?)`,
      this.#count - this.#limit,
    )
    if (count > 0) unit.log({ ...scopeHead(), kind: 'context-trimmed', count, context_limit: this.#limit })
  }

  /** Takes over what a turn changed in its copy of the scratch, key by key, so that what others wrote meanwhile stays. */
  mergeScratch(unit: Unit, before: Record<string, unknown>, after: Record<string, unknown>): Act[] {
    const scratch = { ...this.#live.scratch }
    const acts: Act[] = []
    let changed = false
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const value = JSON.stringify(after[key])
      if (value === JSON.stringify(before[key])) continue
      changed = true
      if (value === undefined) delete scratch[key]
      else scratch[key] = JSON.parse(value)
      // A long value stands in the scratch of the turn's entry already.
      if ((value?.length ?? 0) <= LONGEST_ACT) acts.push({ act: 'set_scratch', key, value: scratch[key] ?? null })
    }
    if (!changed) return acts
    this.#live.scratch = scratch
    unit.write('scratch', scratch)
    return acts
  }

  #drop(unit: Unit, condition: string, parameter: string | number): number {
    const rows = unit.all<{ seq: number }>(
      `UPDATE events SET in_context = 0 WHERE in_context = 1 AND status NOT IN ('pending', 'processing') AND ${condition} RETURNING seq`,
      parameter,
    )
    const gone = new Set(rows.map(({ seq }) => seq))
    this.#count -= gone.size
    const kept = this.#seqs.map((seq) => !gone.has(seq))
    this.#live.events = this.#live.events.filter((_, index) => kept[index])
    this.#sizes = this.#sizes.filter((_, index) => kept[index])
    this.#seqs = this.#seqs.filter((_, index) => kept[index])
    this.#size = this.#sizes.reduce((sum, size) => sum + size, 0)
    // Older events that had no place in memory have one now.
    if (gone.size > 0 && this.#seqs.length < Math.min(this.#count, this.#limit)) this.#live = this.#load()
    return gone.size
  }

  #load(): DecisionContext {
    this.#count = this.#database.first<{ n: number }>('SELECT count(*) AS n FROM events WHERE in_context = 1')?.n ?? 0
    const rows = this.#newest(this.#limit + 2 * TRIM_STEP, Number.MAX_SAFE_INTEGER)
    const events = rows.map(({ event }) => event)
    this.#seqs = rows.map(({ seq }) => seq)
    this.#sizes = rows.map(({ size }) => size)
    this.#size = this.#sizes.reduce((sum, size) => sum + size, 0)
    const last_action_at = this.#database.read<number | null>('last_action_at', null)
    const scratch = this.#database.read<Record<string, unknown>>('scratch', {})
    return new DecisionContext({ scope: this.#scope, events, scratch, created_at: this.#created_at, last_action_at, now: this.#now })
  }

  /** With a backlog, a turn is shown all that it considers, and of what came before as much as the limits allow; the rest is for the next turn. */
  #shown(claimed: readonly Claimed[]): { events: Event[]; seqs: number[] } {
    const own = new Set(claimed.map(({ seq }) => seq))
    const others = this.#before(claimed.at(-1)?.seq ?? 0).filter(({ seq }) => !own.has(seq))
    const shown = [...others, ...claimed].sort((left, right) => left.seq - right.seq)
    return { events: shown.map(({ event }) => event), seqs: shown.map(({ seq }) => seq) }
  }

  /** The newest of the context up to `last`, as many as the limit allows: from memory, unless a backlog has pushed them out. */
  #before(last: number): { seq: number; event: Event }[] {
    const end = this.#seqs.findLastIndex((seq) => seq <= last) + 1
    if (end < this.#limit) return this.#newest(this.#limit, last)
    const first = end - this.#limit
    const { events } = this.#live
    return this.#seqs.slice(first, end).flatMap((seq, index) => {
      const event = events[first + index]
      return event ? [{ seq, event }] : []
    })
  }

  #newest(limit: number, upTo: number, bytes: number = limits.context_bytes): { seq: number; event: Event; size: number }[] {
    return this.#database
      .all<{ seq: number; payload: string }>(
        `SELECT seq, payload FROM (SELECT seq, payload, sum(octet_length(payload)) OVER (ORDER BY seq DESC) AS bytes
          FROM (SELECT seq, payload FROM events WHERE in_context = 1 AND seq <= ? ORDER BY seq DESC LIMIT ?)) WHERE bytes <= ? ORDER BY seq`,
        upTo,
        limit,
        bytes,
      )
      .map(({ seq, payload }) => ({ seq, event: JSON.parse(payload) as Event, size: byteLength(payload) }))
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
