import { Buffer } from 'node:buffer'
import { gunzipSync, gzipSync } from 'node:zlib'
import { messageOf } from '../../base/error-text.ts'
import { SHORT_HASH, textHash } from '../../base/hash.ts'
import { Problem } from '../../contract/problem.ts'
import { BITS, msOf, SLOT } from '../queued.ts'

/**
 * An ended event in a pack. `seq` is its place in lists; `payload` lacks the fields that stand
 * beside it. Times in ms.
 */
export type PackedEvent = {
  seq: bigint
  id: string
  scope: string
  type: string
  status: string
  attempts: number
  error: string | null
  accepted_at: number
  ended_at: number | null
  revision: number
  agent: string
  trace_id: string
  log_from: number
  kinds: number
  skills: string
  payload: unknown
  /** No pack has this: its scope may have forgotten an earlier event of this id. */
  may_repeat?: true
}

/** Another version of the columns cannot be read. */
const VERSION = 1

/** The bytes of a pack are not what was written: its events cannot be shown. */
export class PackDamaged extends Problem {
  constructor(detail: string) {
    super({ status: 500, type: 'urn:reflex:problem:pack-damaged', title: 'A pack of events is damaged', detail })
  }
}

/** The columns as they are, and numbers as differences, which take few bytes. */
type Columns = { version: number; seq: [number, number][]; accepted_at: number[]; ended_at: (number | null)[] } & {
  revision: number[]
  log_from: number[]
} & { [Name in (typeof PLAIN)[number]]: PackedEvent[Name][] }
const PLAIN = ['id', 'scope', 'type', 'status', 'attempts', 'error', 'agent', 'trace_id', 'kinds', 'skills', 'payload'] as const

const differences = (values: readonly number[]): number[] => values.map((value, index) => value - (values[index - 1] ?? 0))
const sums = (values: readonly number[]): number[] => {
  let sum = 0
  return values.map((value) => (sum += value))
}

/** The text of the columns, which the pack has compressed. */
function columnsOf(events: readonly PackedEvent[]): string {
  const times = differences(events.map(({ seq }) => msOf(seq)))
  const places = differences(events.map(({ seq }) => Number(seq % SLOT)))
  const columns = {
    version: VERSION,
    seq: times.map((time, index) => [time, places[index]]),
    accepted_at: events.map(({ seq, accepted_at }) => accepted_at - msOf(seq)),
    ended_at: events.map(({ ended_at, accepted_at }) => (ended_at === null ? null : ended_at - accepted_at)),
    revision: differences(events.map(({ revision }) => revision)),
    log_from: events.map(({ revision, log_from }) => revision - log_from),
    ...Object.fromEntries(PLAIN.map((name) => [name, events.map((event) => event[name])])),
  }
  return JSON.stringify(columns)
}

type EncodedPack = { data: string; raw_bytes: number }

/** The bytes of a pack, in hexadecimal digits: D1 takes and returns them faster than bytes. */
export function encodePack(events: readonly PackedEvent[]): EncodedPack {
  const text = Buffer.from(columnsOf(events))
  return { data: gzipSync(text, { level: 9 }).toString('hex'), raw_bytes: text.byteLength }
}

/** Throws `PackDamaged` for bytes that are no pack; `id` names it. */
export function decodePack(id: string, data: string): PackedEvent[] {
  let columns: Columns
  try {
    columns = JSON.parse(gunzipSync(Buffer.from(data, 'hex')).toString()) as Columns
    if (columns.version !== VERSION) throw new TypeError(`it has the version ${columns.version} of the format`)
  } catch (error) {
    throw new PackDamaged(
      `The pack ${id} of the event log cannot be read: ${messageOf(error)}. The events in other packs are not affected.`,
    )
  }
  const times = sums(columns.seq.map(([time]) => time))
  const places = sums(columns.seq.map(([, place]) => place))
  const revisions = sums(columns.revision)
  return times.map((time, index) => {
    const accepted_at = time + (columns.accepted_at[index] ?? 0)
    const ended = columns.ended_at[index] ?? null
    const revision = revisions[index] ?? 0
    const plain: Record<string, unknown> = {}
    for (const name of PLAIN) plain[name] = columns[name][index]
    return {
      ...(plain as Pick<PackedEvent, (typeof PLAIN)[number]>),
      seq: (BigInt(time) << BigInt(BITS)) + BigInt(places[index] ?? 0),
      accepted_at,
      ended_at: ended === null ? null : accepted_at + ended,
      revision,
      log_from: revision - (columns.log_from[index] ?? 0),
    }
  })
}

/** Hexadecimal digits of a hash of an id or a trace. */
export const HASH_DIGITS = SHORT_HASH

/** The hashes by which look-ups find the pack of these events. */
export const hashesOf = (events: readonly Pick<PackedEvent, 'id' | 'trace_id'>[]): string[] => [
  ...new Set(events.flatMap(({ id, trace_id }) => [textHash(id), textHash(trace_id)])),
]
