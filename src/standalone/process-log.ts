import { canonicalJson, mapJson, type Json, type JsonFields } from '../base/json.ts'
import { maskCredentials } from '../base/secrets.ts'
import { iso } from '../base/time.ts'
import type { EntryBody, EntryHead } from '../contract/log-entry.ts'
import { newSpanId } from '../core/event.ts'
import { partHash } from '../traces/ids.ts'
import { redactor } from '../traces/redact.ts'
import type { LogStore, StandaloneRow } from './rows.ts'

const DAY_MS = 86_400_000
/** Bounds the memory of known hashes. */
const MOST_KNOWN = 5000

/** A span above the entries of one session or one tool. */
export const ownHead = (trace_id: string): EntryHead => ({
  trace_id,
  span_id: newSpanId(),
  parent_id: null,
  event_ids: [],
  duration_ms: null,
})

/** The name under which the log has the rows of a part. */
const partTrace = (hash: string): string => `part:${hash}`

/** True for rows that are no entries of a trace, but values that entries name by their hashes. */
export const isPart = ({ kind }: Pick<StandaloneRow, 'kind'>): boolean => kind === 'part'

/** The parts among these hashes that the log has. */
export const partsIn = (log: Pick<LogStore, 'entries'>, hashes: Iterable<string>): Record<string, unknown> =>
  Object.fromEntries(
    Array.from(new Set(hashes)).flatMap((hash) => {
      const row = log.entries({ trace_id: partTrace(hash) }).at(-1)
      return row ? [[hash, row['value']]] : []
    }),
  )

/** A text without what looks like a secret. Files of a message are named by their hashes. */
function logged(value: unknown): unknown {
  if (typeof value === 'string') return maskCredentials(value)
  if (value instanceof URL) return maskCredentials(value.href)
  if (value instanceof Uint8Array) return `not logged: ${value.length} bytes, ${partHash(Buffer.from(value).toString('base64'))}`
  return value
}

/** Returns the value as it is logged, before named fields are masked. */
export const plainTexts = (value: unknown): unknown => mapJson(value, logged)

/** The mask of what a process logs: named fields, and texts that look like secrets. */
function processMask(fields: readonly string[]): (value: unknown) => unknown {
  const redact = redactor(fields)
  return (value) => plainTexts(redact(value))
}

/** A log of a process in the entries of a scope's log, with the values that they name. */
export class ProcessLog {
  readonly clean: (value: unknown) => unknown
  readonly #store: LogStore
  readonly #now: () => number
  /** When each part was last written. */
  readonly #written = new Map<string, number>()
  readonly #hashes = new WeakMap<object, string>()

  constructor(store: LogStore, { now, fields = [] }: { now: () => number; fields?: readonly string[] | undefined }) {
    this.#store = store
    this.#now = now
    this.clean = processMask(fields)
  }

  append({ marks: _marks, ...head }: EntryHead, entry: EntryBody | ({ kind: string } & JsonFields)): void {
    this.#store.append({
      ...(head as { trace_id: string } & JsonFields),
      ...(entry as { kind: string } & JsonFields),
      at: iso(this.#now()),
    })
  }

  /**
   * Stores a value once, without secrets, and returns its hash. It is written again after a day.
   * `is_fixed`: the object never changes.
   */
  put(value: object, { is_fixed = false } = {}): string {
    const now = this.#now()
    const known = this.#hashes.get(value)
    if (known !== undefined && now - this.#lastOf(known) < DAY_MS) return known
    const text = canonicalJson(this.clean(value))
    const hash = partHash(text)
    if (is_fixed) this.#hashes.set(value, hash)
    if (now - this.#lastOf(hash) < DAY_MS) return hash
    if (this.#written.size >= MOST_KNOWN) this.#written.clear()
    this.#written.set(hash, now)
    this.#store.append({ at: iso(now), kind: 'part', trace_id: partTrace(hash), value: JSON.parse(text) as Json })
    return hash
  }

  #lastOf(hash: string): number {
    const known = this.#written.get(hash)
    if (known !== undefined) return known
    const row = this.#store.entries({ trace_id: partTrace(hash) }).at(-1)
    const at = row ? Date.parse(row.at) : Number.NEGATIVE_INFINITY
    this.#written.set(hash, at)
    return at
  }
}
