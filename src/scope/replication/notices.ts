import type { ApprovalRequest } from '../../contract/control-plane/approval.ts'
import type { Json } from '../../base/json.ts'
import { byteLength } from '../../base/byte-length.ts'
import type { NewEntry } from '../../contract/log-entry.ts'
import { hopsOfSender, noticeId, type Alert, type Notice } from '../../contract/reports/notice.ts'
import type { NoticeType } from '../../contract/settings/webhooks.ts'
import { inBackground } from '../log/failures.ts'
import { scopeHead } from '../log/spans.ts'
import type { Unit } from '../storage/unit.ts'
import type { Ground } from '../storage/wiring.ts'

/** More notices of a scope do not wait; the rest is counted as dropped. */
const MOST_WAITING = 1000
/** Receivers expect small bodies: longer results are left out. */
const MOST_BYTES = 16_000
/** Ids of alerts that are remembered. */
const MOST_ALERTS = 100

export type WaitingNotice = { webhook: string; notice: Notice }
type Found = { type: NoticeType; data: Record<string, Json> }
/** `budget`: the spent budget that was reported. */
type Kept = { dropped: number; budget: Json; alerts: string[] }
const KEY = 'notices'
const NOTHING_KEPT: Kept = { dropped: 0, budget: null, alerts: [] }

type Parts = Pick<Ground, 'scope' | 'database' | 'log' | 'jobs' | 'unit' | 'settings' | 'now'>

/**
 * Notices for the scope's webhooks. Each is a job, added in the unit that logs what it reports, so
 * that neither exists without the other. `send-notice.ts` delivers them.
 */
export class Notices {
  readonly #parts: Parts
  #added = false

  constructor(parts: Parts) {
    this.#parts = parts
    parts.log.onAppend((entries) => this.#appended(entries))
    // After the commit, when the unit is closed.
    parts.log.listen(() => {
      if (!this.#added) return
      this.#added = false
      inBackground(Promise.resolve().then(() => parts.jobs.run()))
    })
  }

  /** Called in the unit that asks. Of the questions, only runs have a log entry. */
  approvalRequested(unit: Unit, { id, created_at, expires_at, ...request }: ApprovalRequest): void {
    const { scope: _scope, requested_key: _key, ...asked } = request
    const times = { created_at: new Date(created_at).toISOString(), expires_at: new Date(expires_at).toISOString() }
    this.#add(unit, { type: 'approval.requested', data: { approval_id: id, ...asked, ...times } as Record<string, Json> })
  }

  /** Logs and reports an alert once. False if it was raised before. */
  raise(unit: Unit, { id, ...alert }: Alert): boolean {
    const kept = this.#kept()
    if (kept.alerts.includes(id)) return false
    unit.write(KEY, { ...kept, alerts: [...kept.alerts, id].slice(-MOST_ALERTS) })
    unit.log({ ...scopeHead(), kind: 'alert-raised', alert_id: id, ...alert })
    return true
  }

  /** Number of notices dropped since the last call. */
  takeDropped(unit: Unit): number {
    const kept = this.#kept()
    if (kept.dropped > 0) unit.write(KEY, { ...kept, dropped: 0 })
    return kept.dropped
  }

  #appended(entries: readonly NewEntry[]): void {
    if (this.#parts.settings().webhooks.length === 0) return
    const found = entries.flatMap((entry) => noticesOf(entry).map((one) => ({ ...one, event_id: entry.event_ids[0] })))
    if (found.length > 0) this.#parts.unit((unit) => found.forEach((one) => this.#add(unit, one)))
  }

  /** `event_id`: the event that it reports on. */
  #add(unit: Unit, { type, data, event_id }: Found & { event_id?: string | undefined }): void {
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
      const notice: Notice = { id: noticeId(hops + 1), type, at: unit.now, data: bounded({ scope, ...data }) }
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
    return { ...NOTHING_KEPT, ...this.#parts.database.read<Partial<Kept>>(KEY, {}) }
  }
}

/** The notices that stand behind the event. */
function hopsOf(unit: Unit, event_id: string | undefined): number {
  if (event_id === undefined) return 0
  const sql = `SELECT payload ->> '$.meta.sender' AS sender FROM events WHERE id = ?`
  return hopsOfSender(unit.first<{ sender: string | null }>(sql, event_id)?.sender ?? '')
}

type EntryOf<Kind extends NewEntry['kind']> = Extract<NewEntry, { kind: Kind }>
type Reporters = { [Kind in NewEntry['kind']]?: (entry: EntryOf<Kind>) => Found[] }

/** The notices that a log entry calls for. */
export function noticesOf(entry: NewEntry): Found[] {
  const report = reporters[entry.kind] as ((one: NewEntry) => Found[]) | undefined
  return report?.(entry) ?? []
}

const reporters: Reporters = {
  'event-ended': ({ event_ids: [event_id = ''], trace_id, status, attempts, error, outcome }) => {
    const data = { event_id, trace_id, status, attempts, error, outcome: outcome as Json }
    const dead: Found[] = status === 'dead_lettered' ? [{ type: 'event.dead_lettered', data }] : []
    return [{ type: 'event.ended', data }, ...dead]
  },
  'reflex-moved': ({ reflex_id, version, from, to, reason }) =>
    from === 'active' && to !== 'active' ? [{ type: 'reflex.demoted', data: { reflex_id, version, from, to, reason } }] : [],
  'turn-ended': ({ status, turn_id, trace_id, error }) =>
    status === 'refused' ? [{ type: 'budget.spent', data: { turn_id, trace_id, detail: error } }] : [],
  'alert-raised': ({ alert_id, name, summary, details }) => [{ type: 'alert.raised', data: { alert_id, name, summary, details } }],
}

function bounded(data: Record<string, Json>): Record<string, Json> {
  if (byteLength(JSON.stringify(data)) <= MOST_BYTES) return data
  const { outcome, inputs: _inputs, ...rest } = data
  const small = { ...rest, ...(isFields(outcome) && { outcome: { by: outcome['by'] ?? null } }), shortened: true }
  if (byteLength(JSON.stringify(small)) <= MOST_BYTES) return small
  const cut = (value: Json): Json => (typeof value === 'string' ? value.slice(0, 1000) : value)
  return Object.fromEntries(Object.entries(small).map(([name, value]: [string, Json]) => [name, cut(value)]))
}

const isFields = (value: Json | undefined): value is { [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
