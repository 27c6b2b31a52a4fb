import type { Settings } from '../../../contract/settings/settings.ts'
import { type Agent, noSlowPath } from '../../../agent/define-agent.ts'
import {
  bucketsOf,
  bucketSteps,
  fireShare,
  OTHER_LABEL,
  type Bucket,
  type BucketRow,
  type Family,
  type StatisticsValues,
} from '../contract/statistics.ts'
import { foldEntry } from '../../../traces/entries/table.ts'
import { addTurn, emptyFold, type Add, type FoldRecord } from '../../../traces/entries/kind.ts'
import { writeStatistics } from '../store/write.ts'
import type { PackedStatistics } from '../store/packed.ts'
import type { Committed, Follows, Log } from '../../../engine/log/log.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'
import type { Database, StateWrite } from '../../../kernel/unit.ts'

/** The state key of the open buckets, and of the last log entry that they include. */
const KEY = 'statistics'
const MOST_LABELS = 50
/** Bounds the entries that are read again on waking. */
const ENTRIES_PER_SNAPSHOT = 500
/** Buckets that are kept in memory, the closed ones of which D1 has everything included. */
const MOST_OPEN = 200
/** While D1 is unavailable, the oldest short buckets are dropped beyond this number. */
const MOST_WAITING = 300
/** An open bucket is replicated at most this often; a new one sooner, at times that double. */
const PACE_MS: Record<Bucket, number> = { minute: 60_000, hour: 600_000, day: 3_600_000, all: 60_000 }
const FIRST_PACE_MS = 60_000
/** A clock that ran ahead by more than this has been corrected. */
const SKEW_MS = 3_600_000

type Open = Omit<BucketRow, 'values'> & {
  labels: Map<string, Record<string, number>>
  /** Counts changes, to notice those that come while D1 is written. */
  changes: number
  /** `changes` when it was last replicated. */
  sent: number
  sent_at: number | null
  times_sent: number
}
type StoredBucket = BucketRow & { waits: boolean; sent_at: number | null; times_sent: number }
type Stored = { seq: number; latest: number; fold: FoldRecord; buckets: StoredBucket[] }

type StatisticsParts = {
  database: Database
  log: Pick<Log, 'uncommitted'>
  /** D1 has what was counted up to this entry, as of waking. */
  told?: number
  db: D1Database
  scope: string
  now: () => number
  agent: () => Pick<Agent, 'name' | 'trigger' | 'unserved'>
  settings: () => Settings
}

/** The start of the bucket of each kind that includes the time. */
function bucketStarts(at: number): Record<Bucket, number> {
  const { minute, hour, day } = bucketSteps
  return { minute: at - (at % minute), hour: at - (at % hour), day: at - (at % day), all: 0 }
}

/**
 * A scope's statistics by minute, hour and day, counted from its committed log. The state table has
 * the open buckets as of an entry of the log; on waking, the log after it is counted again. D1
 * receives absolute values, so that a repeated write changes nothing.
 */
export class Statistics implements Follows {
  readonly name = 'statistics'
  /** The entry that the stored buckets include. */
  readonly from: number
  readonly #parts: StatisticsParts
  readonly #open = new Map<string, Open>()
  readonly #fold: FoldRecord
  readonly #add: Add = (family, label, counts) => {
    const changes = Object.entries(counts)
    for (const open of this.#current(family)) {
      count(open, label, changes)
      // Lists show it as the time of the last event, so that the row of the scope may be older.
      if (family === 'scope' && open.bucket === 'all') Object.assign(open.labels.get(label) ?? {}, { max_at: this.#latest })
    }
  }
  /** The entry that the stored buckets include, and the one that the open ones include. */
  #stored_seq: number
  #seq: number
  #latest: number
  /** The settings by which turns take what no reflex decides, or do not. */
  #settings: Settings
  #thinks: boolean
  /** The open buckets of each family that include the latest time, and where they start. */
  #newest: { starts: Record<Bucket, number>; buckets: Map<Family, readonly Open[]> } | null = null

  constructor(parts: StatisticsParts) {
    this.#parts = parts
    const stored = parts.database.read<Stored>(KEY, { seq: 0, latest: 0, fold: emptyFold(), buckets: [] })
    this.#fold = stored.fold
    this.#settings = parts.settings()
    this.#thinks = noSlowPath(parts.agent(), this.#settings) === null
    this.from = this.#seq = this.#stored_seq = stored.seq
    this.#latest = stored.latest
    for (const { values, waits, sent_at, times_sent = 1, ...row } of stored.buckets) {
      const labels = new Map(Object.entries(values))
      this.#open.set(keyOf(row), { ...row, labels, changes: 1, sent: waits ? 0 : 1, sent_at, times_sent })
    }
  }

  follow(entries: readonly Committed[]): void {
    const { told = 0 } = this.#parts
    const settings = this.#parts.settings()
    if (settings !== this.#settings) this.#thinks = noSlowPath(this.#parts.agent(), settings) === null
    this.#settings = settings
    for (const [index, { seq, at, entry }] of entries.entries()) {
      this.#seq = seq
      // A clock that is set back must not reopen a bucket that was dropped.
      this.#latest = at < this.#latest && this.#latest - at < SKEW_MS ? this.#latest : at
      foldEntry(entry, { record: this.#fold, add: this.#add, thinks: this.#thinks })
      if (seq <= told && (entries[index + 1]?.seq ?? Infinity) > told) this.#sendAll(at)
    }
  }

  /** The numbers that D1 lacks, for a caller that has them written. */
  answer(): PackedStatistics | undefined {
    const changed = Array.from(this.#open.values()).filter((open) => open.changes > open.sent)
    if (changed.length === 0) return undefined
    const rows = changed.map(rowOf)
    this.#sendAll(this.#parts.now())
    if (this.#open.size > MOST_OPEN) this.#forget()
    return { scope: this.#parts.scope, seq: this.#seq, rows }
  }

  /** D1 may lack what was answered, which is due at once. */
  unanswered(): void {
    for (const open of this.#open.values()) Object.assign(open, { sent: 0, sent_at: null })
  }

  #sendAll(at: number): void {
    for (const open of this.#open.values()) {
      if (open.changes > open.sent) this.#sent(open, open.changes, at)
    }
  }

  #sent(open: Open, changes: number, at: number): void {
    open.sent = Math.max(open.sent, changes)
    open.sent_at = at
    open.times_sent += 1
  }

  /** The totals since the scope exists, for tests and reports. */
  values(family: Family, bucket: Bucket): StatisticsValues {
    return valuesOf(this.#bucket(family, bucket, bucketStarts(this.#latest)[bucket]))
  }

  /** Sums over all turns, without dry ones. A unit that ends a turn sees it before its commit. */
  get turns(): FoldRecord['sums'] | null {
    if (!this.#thinks) return null
    return this.#parts.log.uncommitted.reduce((sums, { entry }) => addTurn(sums, entry), this.#fold.sums)
  }

  /** When the next changed bucket may be replicated. */
  due(): number | null {
    const times = Array.from(this.#open.values(), (open) => dueOf(open)).filter((at) => at !== null)
    return times.length === 0 ? null : Math.min(...times)
  }

  /** Replicates the changed buckets that are due. */
  async send(): Promise<void> {
    const { db, scope, now, database } = this.#parts
    const at = now()
    const due = Array.from(this.#open.values()).filter((open) => (dueOf(open) ?? Number.POSITIVE_INFINITY) <= at)
    if (due.length === 0) return
    const sent = due.map((open) => ({ open, changes: open.changes }))
    await writeStatistics(db, scope, due.map(rowOf), this.#seq)
    for (const { open, changes } of sent) this.#sent(open, changes, at)
    database.write(KEY, this.#stored())
  }

  /** Stores the buckets with a unit whenever many entries were counted since the last time. */
  changes(): StateWrite[] {
    return this.#seq - this.#stored_seq < ENTRIES_PER_SNAPSHOT ? [] : [this.snapshot()]
  }

  /** Before the log drops rows. */
  snapshot(): StateWrite {
    return [KEY, this.#stored()]
  }

  #current(family: Family): readonly Open[] {
    const { minute } = this.#newest?.starts ?? { minute: Number.POSITIVE_INFINITY }
    if (this.#latest < minute || this.#latest >= minute + bucketSteps.minute) this.#newest = null
    const newest = (this.#newest ??= { starts: bucketStarts(this.#latest), buckets: new Map() })
    const known = newest.buckets.get(family) ?? bucketsOf(family).map((bucket) => this.#bucket(family, bucket, newest.starts[bucket]))
    newest.buckets.set(family, known)
    return known
  }

  #bucket(family: Family, bucket: Bucket, start: number): Open {
    const key = keyOf({ family, bucket, start })
    let open = this.#open.get(key)
    if (!open) {
      open = { family, bucket, start, labels: new Map(), changes: 0, sent: 0, sent_at: null, times_sent: 0 }
      this.#open.set(key, open)
    }
    return open
  }

  #stored(): Stored {
    this.#forget()
    this.#stored_seq = this.#seq
    const stored = Array.from(this.#open.values(), (open) => {
      const { changes, sent, sent_at, times_sent } = open
      return { ...rowOf(open), waits: changes > sent, sent_at, times_sent }
    })
    return { seq: this.#seq, latest: this.#latest, fold: this.#fold, buckets: stored }
  }

  /** Drops closed buckets that D1 has, and the oldest minutes and hours while D1 is unavailable. */
  #forget(): void {
    const starts = bucketStarts(this.#latest)
    const closed = Array.from(this.#open).filter(([, { bucket, start }]) => start < starts[bucket])
    const done = closed.filter(([, one]) => one.changes === one.sent)
    const waiting = closed.filter(([, one]) => one.changes > one.sent)
    const short = waiting.filter(([, { bucket }]) => bucket !== 'day').toSorted(([, one], [, other]) => one.start - other.start)
    const minutes = short.filter(([, { bucket }]) => bucket === 'minute')
    const excess = Math.max(0, short.length - MOST_WAITING)
    for (const [key] of [...done, ...(minutes.length >= excess ? minutes : short).slice(0, excess)]) this.#open.delete(key)
  }
}

const keyOf = ({ family, bucket, start }: Omit<BucketRow, 'values'>): string => `${family}:${bucket}:${start}`
const valuesOf = ({ labels }: Pick<Open, 'labels'>): StatisticsValues => Object.fromEntries(labels)
const rowOf = (open: Open): BucketRow => ({ family: open.family, bucket: open.bucket, start: open.start, values: valuesOf(open) })

/** A new bucket is due at once, a changed one at its end or after its pace, whichever is first. */
function dueOf({ bucket, start, changes, sent, sent_at, times_sent }: Open): number | null {
  if (changes === sent) return null
  // An alarm needs a time after 0.
  if (sent_at === null) return start || 1
  const pace = Math.min(PACE_MS[bucket], FIRST_PACE_MS * 2 ** (times_sent - 1))
  return Math.min(start + bucketSteps[bucket], sent_at + pace)
}

function count(open: Open, label: string, changes: readonly [name: string, change: number][]): void {
  const name = open.labels.has(label) || open.labels.size < MOST_LABELS ? label : OTHER_LABEL
  const values = open.labels.get(name) ?? {}
  open.labels.set(name, values)
  for (const [key, change] of changes) {
    if (change === 0) continue
    values[key] = key.startsWith('max_') ? Math.max(values[key] ?? 0, change) : (values[key] ?? 0) + change
    open.changes += 1
  }
}

/** Counts in a scope. D1 has the same counts, so that no page disagrees with another. */
export function countStatistics({ follower, outbox, replica, ...parts }: Ground): ScopeFeature {
  const statistics = new Statistics({ ...parts, told: replica.answeredTo })
  outbox.source('statistics', { send: () => statistics.send(), due: () => statistics.due() })
  follower.add(statistics)
  return {
    name: 'statistics',
    answers: () => {
      outbox.rests('statistics')
      return statistics.answer()
    },
    unanswered: () => statistics.unanswered(),
    swept: (unit) => unit.write(...statistics.snapshot()),
    state: () => {
      const { decided = 0, model_calls = 0 } = statistics.values('scope', 'all')[''] ?? {}
      return { fired: { share: fireShare(decided, model_calls), decided, model_calls } }
    },
    turns: () => statistics.turns,
  }
}
