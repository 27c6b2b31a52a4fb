import { DecisionContext } from '../../core/decision-context.ts'
import type { Event } from '../../core/event.ts'
import type { Act } from '../../contract/reflex.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { byteLength } from '../../base/json.ts'
import { limits } from '../../base/limits.ts'
import type { Log } from '../log/log.ts'
import { scopeHead } from '../log/spans.ts'
import type { Database, Unit } from '../../kernel/unit.ts'
import type { ContextRows } from '../inbox/context-rows.ts'
import type { Claimed, Stored } from '../inbox/inbox.ts'
import { toRanges } from '../../traces/ranges.ts'
import { MEMORY_KEY } from '../../agent/conversation/memory.ts'

const LONGEST_ACT = 1000

type Scratch = Readonly<Record<string, unknown>>
type ScratchChange = [key: string, value: string | undefined]

/** The keys that differ, with their new values as JSON: undefined for a key that was removed. */
export function scratchChanges(before: Scratch, after: Scratch): ScratchChange[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key): ScratchChange[] => {
    const value = JSON.stringify(after[key])
    return value === JSON.stringify(before[key]) ? [] : [[key, value]]
  })
}

/**
 * The log entry of a turn already holds a long value, in its scratch. The note by which an agent
 * remembers its turns changes with each: it is no act.
 */
export const scratchActs = (changes: readonly ScratchChange[], { memory }: Pick<Settings, 'memory'>): Act[] =>
  changes
    .filter(([key, value]) => (value?.length ?? 0) <= LONGEST_ACT && !(memory && key === MEMORY_KEY))
    .map(([key, value]) => ({ act: 'set_scratch', key, value: value === undefined ? null : (JSON.parse(value) as unknown) }))

export type SeenContext = { context: DecisionContext; seqs: number[]; scratch: Record<string, unknown> }

type Merged = { before: Record<string, unknown>; after: Record<string, unknown> }

type WorkingMemoryParts = {
  database: Database
  rows: ContextRows
  scope: string
  created_at: number
  now: () => number
  limit: number
  log: Pick<Log, 'clean'>
}

/** Considered events beyond the limit are dropped in steps of this size. */
const TRIM_STEP = 100

/**
 * The scope's DecisionContext. Durable state: the events marked `in_context`, in order of
 * acceptance (G2), and `scratch`. Memory holds the newest of them, about as many as the limit
 * allows, for filters and reflexes. A turn sees the events it considers and earlier ones.
 */
export class WorkingMemory {
  readonly #database: Database
  readonly #rows: ContextRows
  readonly #scope: string
  readonly #created_at: number
  readonly #now: () => number
  readonly #log: Pick<Log, 'clean'>
  #limit: number
  #live: DecisionContext
  #seqs: number[] = []
  #sizes: number[] = []
  #size = 0
  #count = 0

  constructor({ database, rows, scope, created_at, now, limit, log }: WorkingMemoryParts) {
    this.#database = database
    this.#rows = rows
    this.#scope = scope
    this.#created_at = created_at
    this.#now = now
    this.#log = log
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

  /** Inserts in order of acceptance: a retried event may be older than those in memory. */
  add({ seq, event, text }: Stored): void {
    this.#count += 1
    const bytes = byteLength(text)
    this.#size += bytes
    const later = this.#seqs.findLastIndex((other) => other < seq) + 1
    this.#seqs.splice(later, 0, seq)
    this.#sizes.splice(later, 0, bytes)
    this.#live.events.splice(later, 0, event)
    // Keep the events that `trim` has not dropped yet, so a turn's view needs no read from disk.
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

  /** Finds an event of the context in memory. */
  find(seq: number): Event | undefined {
    let low = 0
    let high = this.#seqs.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#seqs[middle] ?? 0) < seq) low = middle + 1
      else high = middle
    }
    return this.#seqs[low] === seq ? this.#live.events[low] : undefined
  }

  /** The newest events before place `before`, oldest first: at most `limit` and a page's bytes. */
  page(limit: number, before = Number.MAX_SAFE_INTEGER): { events: Event[]; first: number; more: boolean } {
    const rows = this.#rows.newest(limit, before - 1, limits.page_bytes)
    const first = rows[0]?.seq ?? 0
    return { events: rows.map(({ event }) => event), first, more: this.#rows.hasBefore(first) }
  }

  /** The places of the context's events up to this one, as ranges: what a turn on it would see. */
  placesUpTo(last: number): [number, number][] {
    const seqs = this.#count <= this.#seqs.length ? this.#seqs : this.#rows.seqs()
    const seen = new Set([...seqs.filter((seq) => seq <= last).slice(-this.#limit), last])
    return toRanges([...seen].sort((one, other) => one - other))
  }

  /**
   * Copies the context for one turn, isolated from later events; it reads the time from `now`.
   * `others` says whether events that have turns of their own are in it.
   */
  view(claimed: readonly Claimed[], others: boolean, now: () => number): SeenContext {
    const all = { events: this.#live.events, seqs: this.#seqs }
    const { events, seqs } = !others ? this.#decided(claimed) : this.#isWhole ? all : this.#shown(claimed)
    const scratch = structuredClone(this.#live.scratch)
    const { created_at, last_action_at } = this.#live
    const context = new DecisionContext({ scope: this.#scope, events: [...events], scratch, created_at, last_action_at, now })
    return { context, seqs: [...seqs], scratch: structuredClone(scratch) }
  }

  /** The places of the events that `clear` drops once those in `ending` have ended. */
  clearable(seqs: readonly number[], ending: readonly number[]): number[] {
    return this.#rows.removable(seqs, ending)
  }

  /** Drops the events that a turn saw, except those that still await an outcome. */
  clear(unit: Unit, seqs: readonly number[]): void {
    this.#drop(this.#rows.remove(unit, seqs))
    this.#live.last_action_at = unit.now
    unit.write('last_action_at', this.#live.last_action_at)
  }

  /**
   * Follows events that ended in this unit. `leave`: later turns do not see them. Returns the
   * places of those that left.
   */
  ended(unit: Unit, seqs: readonly number[], leave: boolean): number[] {
    const left = this.#rows.left(seqs)
    this.#drop(left)
    if (!leave) return left
    const removed = this.#rows.remove(unit, seqs)
    this.#drop(removed)
    return [...left, ...removed]
  }

  /** Drops considered events accepted before `before` (ms). */
  expire(unit: Unit, before: number): void {
    this.#trimmed(unit, this.#drop(this.#rows.remove(unit, this.#rows.before(before))))
  }

  /** Ended events below it have left the context. */
  get floor(): number {
    return this.#rows.floor
  }

  /** Copies the context for filters and reflexes; a decision may change the copy. */
  copy(): DecisionContext {
    const { events, scratch, created_at, last_action_at } = this.#live
    return new DecisionContext({ scope: this.#scope, events: [...events], scratch, created_at, last_action_at, now: this.#now })
  }

  /**
   * Drops the oldest considered events once the context exceeds its limit. `again`: a unit of the
   * same task is to trim it, and writes at once what this one would write first.
   */
  trim(unit: Unit, again = false): void {
    if (this.#count <= this.#limit + (again ? 2 : 1) * TRIM_STEP) return
    this.#trimmed(unit, this.#drop(this.#rows.remove(unit, this.#rows.oldest(this.#count - this.#limit))))
  }

  /** Logs the whole context: earlier entries are not needed to rebuild it. */
  #trimmed(unit: Unit, count: number): void {
    // An empty one needs no entry: what is too old has left the log as well.
    if (count === 0 || this.#count === 0) return
    const { scratch, last_action_at } = this.#live
    const kept = toRanges(this.#count <= this.#seqs.length ? this.#seqs : this.#rows.seqs())
    const context = { kept, scratch: this.#log.clean(scratch), last_action_at }
    unit.log({ ...scopeHead(), kind: 'context-trimmed', count, context_limit: this.#limit, ...context })
  }

  /** Merges a turn's changes of the scratch key by key, so that concurrent writes survive. */
  mergeScratch(unit: Unit, { before, after }: Merged, settings: Pick<Settings, 'memory'>): Act[] {
    const changes = scratchChanges(before, after)
    if (changes.length === 0) return []
    const scratch = { ...this.#live.scratch }
    for (const [key, value] of changes) {
      if (value === undefined) delete scratch[key]
      else scratch[key] = JSON.parse(value)
    }
    this.#live.scratch = scratch
    unit.write('scratch', scratch)
    return scratchActs(changes, settings)
  }

  #drop(seqs: readonly number[]): number {
    if (seqs.length === 0) return 0
    const gone = new Set(seqs)
    this.#count -= gone.size
    const kept = this.#seqs.map((seq) => !gone.has(seq))
    this.#live.events = this.#live.events.filter((_, index) => kept[index])
    this.#sizes = this.#sizes.filter((_, index) => kept[index])
    this.#seqs = this.#seqs.filter((_, index) => kept[index])
    this.#size = this.#sizes.reduce((sum, size) => sum + size, 0)
    // Memory has room for older events again.
    if (this.#seqs.length < Math.min(this.#count, this.#limit)) this.#live = this.#load()
    return gone.size
  }

  #load(): DecisionContext {
    this.#count = this.#rows.count()
    const rows = this.#rows.newest(this.#limit + 2 * TRIM_STEP, Number.MAX_SAFE_INTEGER, limits.context_bytes)
    const events = rows.map(({ event }) => event)
    this.#seqs = rows.map(({ seq }) => seq)
    this.#sizes = rows.map(({ size }) => size)
    this.#size = this.#sizes.reduce((sum, size) => sum + size, 0)
    const last_action_at = this.#database.read<number | null>('last_action_at', null)
    const scratch = this.#database.read<Record<string, unknown>>('scratch', {})
    return new DecisionContext({ scope: this.#scope, events, scratch, created_at: this.#created_at, last_action_at, now: this.#now })
  }

  /** All events of the context are in memory. */
  get #isWhole(): boolean {
    return this.#count <= this.#seqs.length
  }

  /** The events that a turn claimed, and earlier ones that have an outcome. */
  #decided(claimed: readonly Claimed[]): { events: Event[]; seqs: number[] } {
    const { events, seqs } = this.#shown(claimed)
    const seen = new Set([...this.#rows.ended(claimed.at(-1)?.seq ?? 0, this.#limit), ...claimed.map(({ seq }) => seq)])
    return { events: events.filter((_, index) => seen.has(seqs[index] ?? 0)), seqs: seqs.filter((seq) => seen.has(seq)) }
  }

  /**
   * Selects the events a turn sees during a backlog: all it considers, and as many earlier ones as
   * fit.
   */
  #shown(claimed: readonly Claimed[]): { events: Event[]; seqs: number[] } {
    const own = new Set(claimed.map(({ seq }) => seq))
    const others = this.#before(claimed.at(-1)?.seq ?? 0).filter(({ seq }) => !own.has(seq))
    const shown = [...others, ...claimed].sort((left, right) => left.seq - right.seq)
    return { events: shown.map(({ event }) => event), seqs: shown.map(({ seq }) => seq) }
  }

  /** The newest events up to `last`, from disk only if a backlog evicted them from memory. */
  #before(last: number): { seq: number; event: Event }[] {
    const end = this.#seqs.findLastIndex((seq) => seq <= last) + 1
    if (end < this.#limit && !this.#isWhole) return this.#rows.newest(this.#limit, last, limits.context_bytes)
    const first = Math.max(0, end - this.#limit)
    const { events } = this.#live
    return this.#seqs.slice(first, end).flatMap((seq, index) => {
      const event = events[first + index]
      return event ? [{ seq, event }] : []
    })
  }
}
