import { flawsText } from '../base/error-text.ts'
import { buildRegistry } from '../agent/registry.ts'
import { wrapped } from '../agent/wrapped.ts'
import { unboundedComputing } from '../base/computing.ts'
import { hashJson, type JsonFields } from '../base/json.ts'
import type { LogEntry, EntryOf } from '../contract/log-entry.ts'
import { fromZod } from '../contract/problem.ts'
import type { Settings } from '../contract/settings/settings.ts'
import { RECORDING_SCHEMA, type ReplayReport } from '../features/replay/contract/replay.ts'
import { replayChanges, type ReplayChanges } from '../features/replay/contract/what-if.ts'
import { seal, type Basis, type RecordedEvent, type Recording } from '../features/replay/recording.ts'
import { replay } from '../features/replay/replay.ts'
import { cleanerOf, type ReplayHost } from '../features/replay/source.ts'
import { resolvedOf, whatIf } from '../features/replay/what-if/what-if.ts'
import { manifestHash, parseManifest } from '../skills/manifest/manifest.ts'
import { partsNamed } from '../traces/ids.ts'
import { plainMask } from '../traces/redact.ts'
import { entryOf, rowsOf, type TraceSource } from './entries.ts'
import { partsIn, plainTexts } from './process-log.ts'
import type { StandaloneRow } from './rows.ts'

export type { Recording, ReplayReport }

type AskedRow = StandaloneRow & { turn_id: string; prompt: string[]; request: string }

const isAsked = (row: StandaloneRow): row is AskedRow => row.kind === 'turn-asked'

/** A trace with all that its decisions were made from, as a scope exports it. Null without one. */
export async function recordingOf(source: TraceSource, trace_id: string): Promise<Recording | null> {
  const rows = Array.from(rowsOf(source, trace_id))
  if (rows.length === 0) return null
  const asked = rows.filter(isAsked)
  const logged = lastEnds(rows.flatMap((row) => (isAsked(row) ? [] : [entryOf(row)])))
  const parts = partsIn(source.log, [...logged.flatMap(partsNamed), ...asked.flatMap(({ prompt, request }) => [...prompt, request])])
  const entries = logged.map((entry) => (entry.kind === 'turn-started' ? considering(entry, asked) : entry))
  const bases = entries.flatMap((entry) => ('basis' in entry && typeof entry.basis === 'string' ? [parts[entry.basis] as Basis] : []))
  const { agent, settings } = bases.at(-1) ?? { agent: { name: 'wrapped', version: null }, settings: {} as Settings }
  const scope = settings.project ?? 'process'
  return seal({
    schema: RECORDING_SCHEMA,
    trace_id,
    scope,
    agent,
    deployment: null,
    settings,
    settings_hash: await hashJson(settings),
    complete: isComplete(entries),
    entries,
    events: asked.map((row) => eventOf(row, { scope, parts })),
    parts,
    programs: {},
    manifests: manifestsOf(source, entries),
  })
}

/** A turn that went on after it had ended has several ends, of which the last one counts. */
function lastEnds(entries: readonly LogEntry[]): LogEntry[] {
  const last = new Map(entries.flatMap((entry) => (entry.kind === 'turn-ended' ? [[entry.turn_id, entry]] : [])))
  return entries.filter((entry) => entry.kind !== 'turn-ended' || last.get(entry.turn_id) === entry)
}

/** The calls of the user's agent are the events of the turn. */
function considering(started: EntryOf<'turn-started'>, asked: readonly AskedRow[]): EntryOf<'turn-started'> {
  const seqs = asked.filter(({ turn_id }) => turn_id === started.turn_id).map(({ seq }): [number, number] => [seq, seq])
  return { ...started, considered: seqs, saw: { ...started.saw, seqs, count: seqs.length } }
}

function eventOf(row: AskedRow, { scope, parts }: { scope: string; parts: Record<string, unknown> }): RecordedEvent {
  const { seq, at, trace_id, prompt, request, entity_types } = row
  const asked = { ...(parts[request] as object | undefined), prompt: prompt.map((hash) => parts[hash]) }
  const meta = { trace_id, causation_id: null, correlation_id: null }
  const event = { id: `${trace_id}:${seq}`, type: 'wrapped.asked', scope, source: 'sdk', timestamp: at, meta, entity_types, asked }
  return { seq, event }
}

const isComplete = (entries: readonly LogEntry[]): boolean => {
  const ended = new Set(entries.flatMap((entry) => (entry.kind === 'turn-ended' ? [entry.turn_id] : [])))
  return entries.every((entry) => entry.kind !== 'turn-started' || ended.has(entry.turn_id))
}

/** The skills that the entries name. A version never changes, so that the registry has them. */
function manifestsOf({ skills }: Pick<TraceSource, 'skills'>, entries: readonly LogEntry[]): Recording['manifests'] {
  const named = new Set(
    entries.flatMap((entry) => {
      const { manifest_hash, manifests } = entry as unknown as JsonFields
      return [manifest_hash, ...(Array.isArray(manifests) ? manifests : [])]
    }),
  )
  const all = skills.all().map(({ manifest }) => [manifestHash(manifest), manifest] as const)
  return Object.fromEntries(all.filter(([hash]) => named.has(hash)))
}

/** `what_if` needs `changes`: settings of the gate, manifests, or the name of another model. */
export type ReplayOptions = { mode?: 'pinned' | 'what_if'; changes?: ReplayChanges }

const host = (): ReplayHost => ({
  agents: { ...buildRegistry([]), agentOf: () => wrapped },
  computing: unboundedComputing(),
  sandbox() {
    throw new Error('a process has no reflexes')
  },
  cleaner: cleanerOf(plainTexts, plainMask),
})

/** Decides a trace of a process again. It calls no model and no tool, and writes nothing. */
export async function replayRecording(recording: Recording, { mode = 'pinned', changes }: ReplayOptions = {}): Promise<ReplayReport> {
  if (mode === 'pinned' && changes) throw new TypeError('a pinned replay takes no changes: use the mode what_if')
  if (mode === 'pinned') return replay(recording, host())
  if (!changes) throw new TypeError('a what_if needs changes: name at least one')
  const parsed = replayChanges.safeParse(changes)
  if (!parsed.success) throw new TypeError(`the changes are invalid: ${flawsText(fromZod(parsed.error))}`)
  const manifests = new Map([changes.manifest ?? []].flat().map((given) => [given.id, manifestOf(given)] as const))
  const resolved = await resolvedOf(changes, { manifests, code: new Map(), programs: new Map(), live: null })
  return whatIf(recording, resolved, host())
}

function manifestOf(given: unknown) {
  const parsed = parseManifest(given)
  if (!parsed.ok) throw new TypeError(`a manifest is invalid: ${flawsText(parsed.errors)}`)
  return parsed.manifest
}
