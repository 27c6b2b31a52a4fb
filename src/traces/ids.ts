import { createHash } from 'node:crypto'
import type { TraceMarks } from '../contract/event-record.ts'

/** Derives a span from an id, so that it needs no look-up (FNV-1a, 64 bit). */
export function spanOf(id: string): string {
  let high = 0xcbf29ce4
  let low = 0x84222325
  for (let index = 0; index < id.length; index += 1) {
    low = (low ^ id.charCodeAt(index)) >>> 0
    const product = low * 0x1b3
    high = (Math.imul(high, 0x1b3) + Math.floor(product / 0x1_0000_0000) + (low << 8)) >>> 0
    low = product >>> 0
  }
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0')
}

/** Ids of events are unique in their scope. */
export const eventSpan = ({ scope, id }: { scope: string; id: string }): string => spanOf(`event:${scope}:${id}`)
/** The way of an event through the queue. */
export const queueSpan = ({ scope, id }: { scope: string; id: string }): string => spanOf(`queue:${scope}:${id}`)
/** A run that resumes after a crash continues its span. */
export const runSpan = (run_id: string): string => spanOf(`run:${run_id}`)
export const stepSpan = (run_id: string, phase: string, index: number): string => spanOf(`run:${run_id}:${phase}:${index}`)

/** Half of SHA-256: entries name parts often. */
const HASH_DIGITS = 32

/** The name of a stored part, by its canonical JSON without secrets. */
export const partHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, HASH_DIGITS)

/** Hexadecimal digits of a trace id that decide, a multiple of 4 bits below 2^53. */
const FIRST = 18
const DIGITS = 13

export const marksOf = ({ trace_flags, tracestate }: TraceMarks): TraceMarks => ({
  ...(trace_flags !== undefined && { trace_flags }),
  ...(tracestate !== undefined && { tracestate }),
})

/** The caller's decision counts, if it sent one. */
export const isWanted = (trace_id: string, { trace_flags }: TraceMarks, ratio: number): boolean =>
  trace_flags === undefined ? isSampled(trace_id, ratio) : (Number.parseInt(trace_flags, 16) & 1) === 1

/** Every scope decides alike on a trace, as does any sampler by OpenTelemetry's specification. */
export const isSampled = (trace_id: string, ratio: number): boolean =>
  Number.parseInt(trace_id.slice(FIRST, FIRST + DIGITS), 16) / 16 ** DIGITS >= 1 - ratio
