import { z } from 'zod'
import { canonicalInSteps, hashJson, jsonValue, sha256 as sha256Of } from '../../base/json.ts'
import type { Refused, Result } from '../../base/result.ts'
import { atOnce, type Steps } from '../../base/steps.ts'
import { RECORDING_SCHEMA } from './contract/replay.ts'
import type { TraceRecording } from '../../contract/scope-api.ts'
import type { Settings } from '../../contract/settings/settings.ts'

/**
 * The agent, the deployment and the settings that decisions were made with. `max_rounds`: of a
 * process that has another limit than scopes.
 */
export type Basis = { agent: { name: string; version: string | null }; deployment: string | null; settings: Settings; max_rounds?: number }
/** An event with its place in the inbox, as it was accepted. */
export type RecordedEvent = TraceRecording['events'][number]
/** `sealed`: others than its reader may not read the code, so that a replay hides its errors. */
export type RecordedProgram = { id: string; version: number; state: string; code: string; sealed?: boolean | undefined }

/**
 * A trace as one self-contained file: all that its decisions were made from, without secrets.
 * `programs` and `manifests` are keyed by their hash, `parts` by the hash that entries name.
 */
export type Recording = TraceRecording & {
  schema: number
  trace_id: string
  settings_hash: string
  programs: Record<string, RecordedProgram>
  manifests: Record<string, unknown>
  /** SHA-256 of the canonical JSON of all other fields. */
  sha256: string
}

/** Beyond this number the places of one turn would fill the memory before they are looked up. */
const MOST_PLACES = 250_000
/** Places in the inbox, as the log has them. A file of a few bytes could name any number. */
const places = z.array(z.tuple([z.int(), z.int()])).refine((ranges) => {
  let last = -Infinity
  let count = 0
  for (const [from, to] of ranges) {
    if (from <= last || to < from) return false
    ;[last, count] = [to, count + to - from + 1]
  }
  return count <= MOST_PLACES
}, 'are not rising ranges of places, or too many')

const fields = z.looseObject({
  schema: z.int(),
  trace_id: z.string(),
  scope: z.string(),
  agent: z.object({ name: z.string(), version: z.string().nullable() }),
  deployment: z.string().nullable(),
  settings: z.looseObject({}),
  settings_hash: z.string(),
  complete: z.boolean(),
  entries: z.array(
    z.looseObject({
      seq: z.int(),
      at: z.string(),
      kind: z.string(),
      trace_id: z.string(),
      span_id: z.string(),
      parent_id: z.string().nullable(),
      event_ids: z.array(z.string()),
      considered: places.optional(),
      saw: z.looseObject({ seqs: places }).optional(),
    }),
  ),
  events: z.array(z.object({ seq: z.int(), event: z.looseObject({ id: z.string(), type: z.string() }) })),
  programs: z.record(
    z.string(),
    z.object({ id: z.string(), version: z.int(), state: z.string(), code: z.string(), sealed: z.boolean().optional() }),
  ),
  manifests: z.record(z.string(), z.unknown()),
  parts: z.record(z.string(), z.unknown()),
  contexts: z.record(z.string(), z.looseObject({})).optional(),
  sha256: z.string(),
})

export async function seal(recording: Omit<Recording, 'sha256'>): Promise<Recording> {
  return { ...recording, sha256: await hashJson(recording) }
}

/** A trace that went through several scopes: one recording for each. */
type Bundle = { schema: number; trace_id: string; scopes: string[]; recordings: Recording[]; sha256: string }

const bundleFields = z.looseObject({
  trace_id: z.string(),
  scopes: z.array(z.string()),
  recordings: z.array(z.looseObject({})).min(1).max(20),
  sha256: z.string(),
})

/** A file for the recordings of a trace, which are sorted by scope. */
export async function bundle(trace_id: string, recordings: Recording[]): Promise<Recording | Bundle> {
  const [first] = recordings
  if (first && recordings.length === 1) return first
  const content = { schema: RECORDING_SCHEMA, trace_id, scopes: recordings.map(({ scope }) => scope), recordings }
  return { ...content, sha256: await hashJson(content) }
}

type Flaw = Refused<'not_json' | 'unknown_schema' | 'incomplete' | 'changed'>

/**
 * Reads an exported file: one recording for each scope of the trace. Nothing of a file that is cut
 * off or was changed is used.
 */
export async function openRecordings(text: string, run: RunSteps = async (steps) => atOnce(steps)): Promise<Opened> {
  const value = jsonValue(text)
  const isBundle = typeof value === 'object' && value !== null && 'recordings' in value
  if (!isBundle) {
    const opened = await openRecording(value, run)
    return opened.ok ? { ok: true, recordings: [opened.recording] } : opened
  }
  const parsed = bundleFields.safeParse(value)
  if (!parsed.success) return incomplete(parsed.error)
  const { sha256, ...content } = value as Bundle
  if ((await hashOf(content, run)) !== sha256)
    return flawed('changed', 'The content of the file does not match its sha256: it was changed.')
  const recordings: Recording[] = []
  for (const recording of content.recordings) {
    const opened = await openRecording(recording, run)
    if (!opened.ok) return opened
    recordings.push(opened.recording)
  }
  return { ok: true, recordings: recordings }
}

type Opened = Result<{ recordings: Recording[] }, Flaw>
/** Runs the steps in which a large file is read, so that others are served between them. */
type RunSteps = (steps: Steps<string>) => Promise<string>

const hashOf = async (content: object, run: RunSteps): Promise<string> => sha256Of(await run(canonicalInSteps(content)))

async function openRecording(value: unknown, run: RunSteps): Promise<Result<{ recording: Recording }, Flaw>> {
  if (typeof value !== 'object' || value === null)
    return flawed('not_json', 'The file is not a JSON object: it is cut off, or not an exported trace.')
  const schema: unknown = 'schema' in value ? value.schema : undefined
  if (typeof schema !== 'number' || !READ.has(schema)) {
    const named = schema === undefined ? 'names no schema version' : `has the schema version ${JSON.stringify(schema)}`
    return flawed('unknown_schema', `The file ${named}; this server reads the versions 1 to ${RECORDING_SCHEMA}.`)
  }
  const parsed = fields.safeParse(value)
  if (!parsed.success) return incomplete(parsed.error)
  const { sha256, ...content } = value as Recording
  if ((await hashOf(content, run)) !== sha256)
    return flawed('changed', 'The content of the file does not match its sha256: it was changed.')
  // The sandbox shares compiled programs by their hash with live scopes.
  for (const [hash, { id, code }] of Object.entries((value as Recording).programs))
    if ((await sha256Of(code)) !== hash) return flawed('changed', `The code of the reflex ${id} does not match its hash.`)
  return { ok: true, recording: upgraded(value as Recording) }
}

const READ: ReadonlySet<number> = new Set([1, RECORDING_SCHEMA])

function incomplete({ issues: [issue] }: z.ZodError): Flaw {
  return flawed('incomplete', `The file is not complete: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}.`)
}
const flawed = (reason: Flaw['reason'], detail: string): Flaw => ({ ok: false, reason, detail })

/**
 * Gives a file of an older version what the version lacked. Version 1 did not name the settings of
 * a skill session, nor the errors of tools after which a step was retried.
 */
function upgraded(recording: Recording): Recording {
  if (recording.schema === RECORDING_SCHEMA) return recording
  const { agent, deployment, settings, settings_hash } = recording
  const parts = { ...recording.parts, [settings_hash]: { agent, deployment, settings } satisfies Basis }
  const began = recording.entries.filter(({ kind }) => kind === 'effect-started')
  const entries = recording.entries.map((entry) => {
    if (entry.kind === 'blackboard-seeded') return { ...entry, basis: settings_hash }
    const retried = entry.kind === 'effect-ended' && began.some(({ seq, parent_id }) => seq > entry.seq && parent_id === entry.parent_id)
    return retried && entry.status === 'failed' ? { ...entry, retryable: true as const } : entry
  })
  return { ...recording, schema: RECORDING_SCHEMA, parts, entries }
}
