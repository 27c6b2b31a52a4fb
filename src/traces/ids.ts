import { createHash } from 'node:crypto'
import type { TraceMarks } from '../contract/event-record.ts'
import type { EntryHead, LogEntry, SkillEntryKind } from '../contract/log-entry.ts'
import { newSpanId } from '../core/event.ts'

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

export const childHead = (parent: EntryHead): EntryHead => childAt(parent, newSpanId())

type Fields = Readonly<Record<string, unknown>>

/** A run that resumes after a crash continues its span, so it is derived from the run's id. */
export const runHead = (owner: EntryHead, run_id: string): EntryHead => childAt(owner, runSpan(run_id))

export const stepHead = (run: EntryHead, run_id: string, { phase, index }: { phase: string; index: number }): EntryHead =>
  childAt(run, stepSpan(run_id, phase, index))

/** The span of a proposal that waits for a person, from the request to the decision. */
export const approvalHead = (owner: EntryHead, { proposal_id, approval_id }: { proposal_id: string; approval_id: string }): EntryHead =>
  childAt(proposalHead(owner, proposal_id), spanOf(`approval:${approval_id}`))

const proposalHead = (owner: EntryHead, proposal_id: string): EntryHead => childAt(owner, spanOf(`proposal:${proposal_id}`))

/** The place of a session's entry below its owner: a turn, an action, an approval or a call. */
export function sessionHead(owner: EntryHead, kind: SkillEntryKind, { run_id, proposal_id, approval_id, index }: Fields): EntryHead {
  if (typeof run_id === 'string') {
    const run = runHead(owner, run_id)
    if (kind === 'skill-step-ended') return stepHead(run, run_id, { phase: 'step', index: Number(index) })
    if (kind === 'skill-compensation-ended') return stepHead(run, run_id, { phase: 'compensation', index: Number(index) })
    return OWN_SPAN.has(kind) ? childHead(run) : run
  }
  if (typeof proposal_id !== 'string') return childHead(owner)
  if (kind === 'approval-requested') return approvalHead(owner, { proposal_id, approval_id: String(approval_id) })
  return proposalHead(owner, proposal_id)
}

/** Entries within a run that are neither its begin nor its end. */
const OWN_SPAN: ReadonlySet<SkillEntryKind> = new Set(['skill-guard-evaluated', 'blackboard-changed'])

export const childAt = (parent: EntryHead, span_id: string): EntryHead => ({
  ...parent,
  span_id,
  parent_id: parent.span_id,
  duration_ms: null,
})

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

/** The hashes of the parts that an entry names. */
export function partsNamed(entry: LogEntry): string[] {
  if (entry.kind === 'model-called') return [...(entry.prompt ?? []), ...(entry.request === undefined ? [] : [entry.request])]
  if (entry.kind === 'decision-made') return entry.middle ? [entry.middle.basis, entry.middle.state_hash] : []
  const { basis, hash, manifest_hash, manifests } = entry as LogEntry &
    Partial<Record<'basis' | 'hash' | 'manifest_hash' | 'manifests', unknown>>
  return [basis, hash, manifest_hash, ...(Array.isArray(manifests) ? manifests : [])].filter((name) => typeof name === 'string')
}
