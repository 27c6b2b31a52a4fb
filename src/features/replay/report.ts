import { isJsonFields } from '../../base/json.ts'
import type { LogEntry } from '../../contract/log-entry.ts'
import type { Difference, Divergence, UnknownDecision } from './contract/replay.ts'

/** A decision read something that the recording does not have. */
export class Unrecorded extends Error {}

/** Differences shown of one decision. */
const MOST_DIFFERENCES = 20

/** The paths at which two JSON values differ, outermost first. */
export function differences(recorded: unknown, replayed: unknown): Difference[] {
  const found: Difference[] = []
  const walk = (left: unknown, right: unknown, path: string): void => {
    if (Object.is(left, right) || found.length >= MOST_DIFFERENCES) return
    if (Array.isArray(left) && Array.isArray(right)) {
      const length = Math.max(left.length, right.length)
      for (let index = 0; index < length; index += 1) walk(left[index], right[index], `${path}/${index}`)
    } else if (isJsonFields(left) && isJsonFields(right)) {
      const names = new Set([...Object.keys(left), ...Object.keys(right)])
      for (const name of names) walk(left[name], right[name], `${path}/${name}`)
    } else found.push({ path, recorded: left ?? null, replayed: right ?? null })
  }
  walk(plain(recorded), plain(replayed), '')
  return found
}

/** As JSON has it: fields that are undefined do not exist. */
const plain = (value: unknown): unknown => (value === undefined ? null : (JSON.parse(JSON.stringify(value)) as unknown))

type At = Pick<LogEntry, 'span_id'>
type Pair = { recorded: unknown; replayed: unknown }

type Tally = { same: number; changed: number; unknown: number }

/** Collects what a replay compares. */
export class Comparison {
  compared = 0
  /** Number of those that differ. */
  changed = 0
  /** Decisions by their kind. */
  readonly decisions: Record<string, Tally> = {}
  readonly divergences: Divergence[] = []
  readonly unknown: UnknownDecision[] = []
  /** The entries that were compared or are unknown. */
  readonly covered = new Set<object>()

  compare(at: At, kind: string, { recorded, replayed }: Pair): boolean {
    const { span_id } = at
    this.compared += 1
    this.covered.add(at)
    const found = differences(recorded, replayed)
    this.divergences.push(...found.map((difference) => ({ span_id, kind, ...difference })))
    this.#count(kind, found.length > 0 ? 'changed' : 'same')
    return found.length === 0
  }

  /** An entry that was compared by other means, such as by a hash. */
  same(at: At, kind: string): void {
    this.compared += 1
    this.covered.add(at)
    this.#count(kind, 'same')
  }

  /** Like `compare`, for a decision on masked values: a difference may be due to the mask. */
  compareMasked(at: At, kind: string, pair: Pair): void {
    if (differences(pair.recorded, pair.replayed).length === 0) this.compare(at, kind, pair)
    else this.cannot(at, kind, 'it was decided on redacted values, and is decided otherwise without them')
  }

  diverge(at: At, kind: string, difference: Difference): void {
    const { span_id } = at
    this.compared += 1
    this.covered.add(at)
    this.#count(kind, 'changed')
    this.divergences.push({ span_id, kind, ...difference })
  }

  cannot(at: At, kind: string, reason: string): void {
    const { span_id } = at
    this.covered.add(at)
    this.#count(kind, 'unknown')
    this.unknown.push({ span_id, kind, reason })
  }

  #count(kind: string, outcome: keyof Tally): void {
    const tally = (this.decisions[kind] ??= { same: 0, changed: 0, unknown: 0 })
    tally[outcome] += 1
    if (outcome === 'changed') this.changed += 1
  }
}
