import { type Json, byteLength, isJsonFields } from '../../../base/json.ts'
import type { Settings } from '../../../contract/settings/settings.ts'
import type { Alert } from '../../../contract/alert.ts'
import { hopsOfSender, noticeId, type Notice } from '../contract/notice.ts'
import type { FoundNotice } from '../../../traces/entries/kind.ts'
import { noticesOf } from '../../../traces/entries/table.ts'
import { inBackground } from '../../../engine/log/failures.ts'
import type { Committed, Follows } from '../../../engine/log/log.ts'
import { scopeHead } from '../../../engine/log/spans.ts'
import type { ScopeFeature, Told } from '../../../engine/feature.ts'
import type { Database, StateWrite, Unit } from '../../../kernel/unit.ts'
import type { Ground } from '../../../engine/storage/wiring.ts'

/** More notices of a scope do not wait; the rest is counted as dropped. */
const MOST_WAITING = 1000
/** Receivers expect small bodies: longer results are left out. */
const MOST_BYTES = 16_000
/** Ids of alerts that are remembered. */
const MOST_ALERTS = 100
/** Bounds the entries that are read again on waking. */
const ENTRIES_PER_MARK = 2000

export type WaitingNotice = { webhook: string; notice: Notice }
/** `event_id`: the event that it reports on. */
type Dated = FoundNotice & { at: number; event_id?: string | undefined }
/** `budget`: the spent budget that was reported. `seq`: the entry up to which all is reported. */
type Kept = { dropped: number; budget: Json; alerts: string[]; seq?: number }
const KEY = 'notices'
const NOTHING_KEPT: Kept = { dropped: 0, budget: null, alerts: [] }

type NoticesParts = Pick<Ground, 'scope' | 'database' | 'log' | 'follower' | 'jobs' | 'unit' | 'settings'>

/**
 * Notices for the scope's webhooks. Each is a job. Notices of log entries are added after the
 * commit, in one unit with the mark up to which the log is reported: each entry is reported once.
 * `send-notice.ts` delivers them.
 */
export class Notices implements Follows, ScopeFeature {
  readonly name = 'notices'
  readonly from: number
  readonly #parts: NoticesParts
  /** The last entry that was followed, and the mark on disk. */
  #seq: number
  #marked: number
  /** The webhooks that the mark is for: entries before it are not reported to others. */
  #webhooks: Settings['webhooks'] | null
  #added = false

  constructor(parts: NoticesParts) {
    this.#parts = parts
    const { settings, log, follower } = parts
    const { seq } = this.#kept()
    const { webhooks } = settings()
    this.from = this.#seq = this.#marked = webhooks.length === 0 ? log.last : (seq ?? log.last)
    this.#webhooks = seq === undefined ? null : webhooks
    follower.add(this)
    // The scope runs all its jobs on waking.
    this.#added = false
  }

  follow(entries: readonly Committed[]): void {
    const { webhooks } = this.#parts.settings()
    this.#seq = entries.at(-1)?.seq ?? this.#seq
    const wanted = new Set(webhooks.flatMap(({ on }) => on))
    const found = wanted.size === 0 ? [] : entries.flatMap(foundIn).filter(({ type }) => wanted.has(type))
    if (found.length > 0)
      this.#parts.unit((unit) => {
        for (const one of found) this.#add(unit, one)
        unit.write(...this.#mark())
      })
    if (!this.#added) return
    this.#added = false
    inBackground(Promise.resolve().then(() => this.#parts.jobs.run()))
  }

  /** Stores the mark before the first entry that webhooks may want, and then rarely. */
  changes(): StateWrite[] {
    const { webhooks } = this.#parts.settings()
    const is_same = webhooks === this.#webhooks && this.#seq - this.#marked < ENTRIES_PER_MARK
    return webhooks.length === 0 || is_same ? [] : [this.#mark()]
  }

  #mark(): StateWrite {
    this.#marked = this.#seq
    this.#webhooks = this.#parts.settings().webhooks
    return [KEY, { ...this.#kept(), seq: this.#seq }]
  }

  /** Called in the unit of what happened. */
  told(unit: Unit, told: Told): void {
    this.#add(unit, told)
  }

  /** Number of notices dropped since the last call. */
  takeDropped(unit: Unit): number {
    const kept = this.#kept()
    if (kept.dropped > 0) unit.write(KEY, { ...kept, dropped: 0 })
    return kept.dropped
  }

  #add(unit: Unit, { type, data, at, event_id }: Dated): void {
    const { scope, settings, jobs } = this.#parts
    const webhooks = settings().webhooks.filter(({ on }) => on.includes(type))
    if (webhooks.length === 0 || (type === 'budget.spent' && !this.#isNewBudget(unit, data['detail'] ?? null))) return
    const waiting = unit.first<{ n: number }>("SELECT count(*) AS n FROM jobs WHERE kind = 'notice'")?.n ?? 0
    if (waiting + webhooks.length > MOST_WAITING) {
      const kept = this.#kept()
      return unit.write(KEY, { ...kept, dropped: kept.dropped + webhooks.length })
    }
    const hops = hopsOf(unit, event_id)
    for (const { name } of webhooks) {
      const notice: Notice = { id: noticeId(hops + 1), type, at, data: bounded({ scope, ...data }) }
      jobs.add(unit, { kind: 'notice', key: notice.id, payload: { webhook: name, notice } satisfies WaitingNotice })
    }
    this.#added = true
  }

  /** Each turn that waits for a budget says so: the budget's first one counts. */
  #isNewBudget(unit: Unit, detail: Json): boolean {
    const kept = this.#kept()
    if (kept.budget === detail) return false
    unit.write(KEY, { ...kept, budget: detail })
    return true
  }

  #kept(): Kept {
    return keptIn(this.#parts.database)
  }
}

const keptIn = (database: Database): Kept => ({ ...NOTHING_KEPT, ...database.read<Partial<Kept>>(KEY, {}) })

/** Logs an alert once, which is reported as the log is. False if it was raised before. */
export function raise(unit: Unit, database: Database, { id, ...alert }: Alert): boolean {
  const kept = keptIn(database)
  if (kept.alerts.includes(id)) return false
  unit.write(KEY, { ...kept, alerts: [...kept.alerts, id].slice(-MOST_ALERTS) })
  unit.log({ ...scopeHead(), kind: 'alert-raised', alert_id: id, ...alert })
  return true
}

/** The notices that stand behind the event. */
function hopsOf(unit: Unit, event_id: string | undefined): number {
  if (event_id === undefined) return 0
  const sql = `SELECT payload ->> '$.meta.sender' AS sender FROM events WHERE id = ?`
  return hopsOfSender(unit.first<{ sender: string | null }>(sql, event_id)?.sender ?? '')
}

const foundIn = ({ entry, at }: Committed): Dated[] => noticesOf(entry).map((one) => ({ ...one, at, event_id: entry.event_ids[0] }))

function bounded(data: Record<string, Json>): Record<string, Json> {
  if (byteLength(JSON.stringify(data)) <= MOST_BYTES) return data
  const { outcome, inputs: _inputs, ...rest } = data
  const small = { ...rest, ...(isJsonFields(outcome) && { outcome: { by: outcome['by'] ?? null } }), shortened: true }
  if (byteLength(JSON.stringify(small)) <= MOST_BYTES) return small
  const cut = (value: Json): Json => (typeof value === 'string' ? value.slice(0, 1000) : value)
  return Object.fromEntries(Object.entries(small).map(([name, value]: [string, Json]) => [name, cut(value)]))
}
