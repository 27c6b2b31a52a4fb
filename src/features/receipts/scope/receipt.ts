import { jsonValue } from '../../../base/json.ts'
import type { LogEntry } from '../../../contract/log-entry.ts'
import type { TraceRecording } from '../../../contract/scope-api.ts'
import { inEachScope } from '../../../engine/installed.ts'
import { recordingOf } from '../../../engine/trace-recording.ts'
import { serving } from '../../../engine/storage/serving.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import { streamOfLines } from '../../../traces/recording-lines.ts'
import type { ReflexContext } from '../../../reflexes/reflex-context.ts'
import type { ExportChain, OfReceipt, Proven, ScopeEvidence, WithChain } from '../contract/receipt.ts'
import { publicKeys, signerOf } from '../keys.ts'
import type { ScopeFeature } from '../../../engine/feature.ts'
import { archiveChain } from './archive-chain.ts'
import { evidenceOf } from './evidence.ts'
import { RowLinks } from './row-links.ts'

const linksOf = inEachScope(({ scope, env, database, log, now }) => {
  const links = new RowLinks({ scope, database, signer: signerOf(env), last: log.last, now })
  log.linkBy(links)
  log.listen(() => void links.committed())
  return links
})

/** Links the rows of a scope's log from now on, also those that move to an archive. */
export function linkLog(scope: Collaborators): ScopeFeature {
  linksOf(scope)
  return { name: 'receipts', chainFile: (links, of) => archiveChain(scope, links, of) }
}

/** The scope's part of a receipt; null if its log does not name the trace. */
export async function receiptIn(scope: Collaborators, { trace_id, neighbours }: OfReceipt): Promise<ReadableStream<Uint8Array> | null> {
  const recording = await recordingOf(scope, { trace_id, contexts: neighbours })
  if (recording === null) return null
  const { entries, events, parts } = recording
  const own = events.filter(({ event }) => event.meta.trace_id === trace_id)
  const ids = new Set(own.map(({ event }) => event.id))
  const evidence = await evidenceIn(scope, entries, (context) => neighbours || isOf(ids, context))
  const shown = neighbours ? { events, parts } : { events: own, parts: withoutQuotes(entries, parts) }
  // An entry whose links are in a file that cannot be read is not in the evidence.
  const complete = recording.complete && evidence.entries.length === entries.length
  return streamOfLines({ recording: { ...recording, ...shown, complete }, evidence } satisfies ScopeEvidence)
}

/** An exported trace with its chain, whose texts are the entries; null if the log has none. */
export async function signedRecordingOf(scope: Collaborators, trace_id: string): Promise<ReadableStream<Uint8Array> | null> {
  const recording = await recordingOf(scope, { trace_id, contexts: true })
  if (recording === null) return null
  const { begins, entries: proven, segments } = await evidenceIn(scope, recording.entries, () => true)
  const texts = new Map(recording.entries.map((entry) => [entry.seq, JSON.stringify(entry)]))
  const entries = proven.map((one) => besideText(one, texts.get(one.seq)))
  const { keys } = publicKeys(scope.env)
  return streamOfLines({ ...recording, chain: { keys, begins, entries, segments } } satisfies WithChain)
}

/** A proof without the text, if it is the one that the entry has in the file. */
function besideText(one: Proven, text: string | undefined): ExportChain['entries'][number] {
  const { seq } = one
  if ('unsigned' in one) return one.unsigned === text ? { seq } : one
  const { row, path } = one
  if ('leaf' in one) return one.shown === text ? { seq, row, leaf: one.leaf, path } : one
  const { salt } = one
  if (!('context' in one)) return one.text === text ? { seq, row, salt, path } : one
  const { context } = one
  return 'salt' in context && one.text + context.text === text ? { seq, row, salt, context: { salt: context.salt }, path } : one
}

const evidenceIn = (scope: Collaborators, entries: readonly LogEntry[], shows: (context: string) => boolean) =>
  evidenceOf(
    { ...scope, computing: serving(), fresh: () => linksOf(scope).head(), shows },
    entries.map(({ seq }) => seq),
  )

/** True if a context of a reflex names events of this trace alone. */
function isOf(ids: ReadonlySet<string>, text: string): boolean {
  const context = jsonValue(text) as Partial<ReflexContext> | undefined
  if (typeof context !== 'object' || context === null) return true
  const { event, recent_events = [], recent_actions = [] } = context
  return [event?.id, ...recent_events.map(({ id }) => id), ...recent_actions.map(({ event_id }) => event_id)].every(
    (id) => id === undefined || ids.has(id),
  )
}

/** Messages of prompts and states of decision models quote the context: entries have their hash. */
function withoutQuotes(entries: readonly LogEntry[], parts: TraceRecording['parts']): TraceRecording['parts'] {
  const quoting = new Set(
    entries.flatMap((entry) => {
      if (entry.kind === 'model-called') return entry.prompt ?? []
      return entry.kind === 'decision-made' && entry.middle ? [entry.middle.state_hash] : []
    }),
  )
  return Object.fromEntries(Object.entries(parts).filter(([hash]) => !quoting.has(hash)))
}
