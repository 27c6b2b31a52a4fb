import { jsonValue } from '../../../base/json.ts'
import type { LogEntry } from '../../../contract/log-entry.ts'
import type { TraceRecording } from '../../../contract/scope-api.ts'
import { inEachScope } from '../../../engine/installed.ts'
import { recordingOf } from '../../../engine/trace-recording.ts'
import { serving } from '../../../engine/storage/serving.ts'
import type { Collaborators } from '../../../engine/wiring.ts'
import { streamOfLines } from '../../../traces/recording-lines.ts'
import type { ReflexContext } from '../../../reflexes/reflex-context.ts'
import type { OfReceipt, ScopeEvidence } from '../contract/receipt.ts'
import { signerOf } from '../keys.ts'
import { evidenceOf } from './evidence.ts'
import { RowLinks } from './row-links.ts'

const linksOf = inEachScope(({ scope, env, database, log, now }) => {
  const links = new RowLinks({ scope, database, signer: signerOf(env), last: log.last, now })
  log.linkBy(links)
  log.listen(() => void links.committed())
  return links
})

/** Links the rows of a scope's log from now on. */
export function linkLog(scope: Collaborators): null {
  linksOf(scope)
  return null
}

/** The scope's part of a receipt; null if its log does not name the trace. */
export async function receiptIn(scope: Collaborators, { trace_id, neighbours }: OfReceipt): Promise<ReadableStream<Uint8Array> | null> {
  const recording = await recordingOf(scope, { trace_id, contexts: neighbours })
  if (recording === null) return null
  const { entries, events, parts } = recording
  const own = events.filter(({ event }) => event.meta.trace_id === trace_id)
  const ids = new Set(own.map(({ event }) => event.id))
  const evidence = await evidenceOf(
    {
      ...scope,
      computing: serving(),
      fresh: () => linksOf(scope).head(),
      shows: (context) => neighbours || isOf(ids, context),
    },
    entries.map(({ seq }) => seq),
  )
  const shown = neighbours ? { events, parts } : { events: own, parts: withoutQuotes(entries, parts) }
  return streamOfLines({ recording: { ...recording, ...shown }, evidence } satisfies ScopeEvidence)
}

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
