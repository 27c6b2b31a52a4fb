import { lookUpReflex, lookUpSkill, type Asker } from '../../../artifacts/look-up.ts'
import { storedReflex, storedSkill } from '../../../artifacts/platform.ts'
import { hashJson, sha256 } from '../../../base/json.ts'
import type { LogEntry } from '../../../contract/log-entry.ts'
import type { OfTrace, TraceRecording } from '../../../contract/scope-api.ts'
import type { ReflexVersion } from '../../../contract/reflex.ts'
import type { SkillVersion } from '../../../contract/skill.ts'
import type { Env } from '../../../env.ts'
import { RECORDING_SCHEMA } from '../../replay/contract/replay.ts'
import { seal, type RecordedProgram, type Recording } from '../../replay/recording.ts'
import { storeOf } from '../../../store/store.ts'
import { signedRecording, traceRecording } from '../../../traces/recording-lines.ts'
import type { Problem } from '../../../contract/problem.ts'
import { notFound, unavailable } from '../../../http/problems/refusals.ts'

/** The file holds what its reader may read. Null for a replay here, which needs all. */
type Reader = Asker | null

async function reflexFor(db: D1Database, { id, version }: { id: string; version: number }, reader: Reader): Promise<ReflexVersion | null> {
  if (reader === null) return storedReflex(db, id, version)
  const found = await lookUpReflex(db, { id, version }, reader)
  return found?.reads ? found.version : null
}

async function skillFor(db: D1Database, { id, version }: { id: string; version: string }, reader: Reader): Promise<SkillVersion | null> {
  if (reader === null) return storedSkill(db, id, version)
  const found = await lookUpSkill(db, { id, version }, reader)
  return found?.reads ? found.version : null
}

/** The same with the sums of files, and with signed heads if the deployment signs any. */
export const exportTrace = async (env: Env, scopes: readonly string[], of: OfTrace, reader: Reader): Promise<Recording[]> =>
  Promise.all((await recordingsOf(env, scopes, of, reader, true)).map(({ sha256: _sha256, ...recording }) => seal(recording)))

/** A recording for each scope whose log still has the trace, without a sum. */
export async function recordingsOf(
  env: Env,
  scopes: readonly string[],
  of: OfTrace,
  reader: Reader = null,
  with_heads = false,
): Promise<Recording[]> {
  const read = with_heads && env.REFLEX_RECEIPTS_KEY ? signedRecording : traceRecording
  const found = await Promise.all(scopes.map((scope) => exportFrom(env, of.trace_id, read(env.SCOPE.getByName(scope), of), reader)))
  const recordings = found.filter((recording) => recording !== null).filter(({ entries }) => entries.length > 0)
  if (recordings.length === 0) throw absentTrace(of.trace_id, scopes, found)
  if (recordings.length === found.length) return recordings
  return recordings.map((recording) => ({ ...recording, complete: false }))
}

/** `found`: null for the scopes whose log does not name the trace. The others cannot be read. */
export function absentTrace(trace_id: string, scopes: readonly string[], found: readonly (object | null | undefined)[]): Problem {
  const unread = scopes.filter((_, index) => found[index] !== null)
  if (unread.length === 0) return notFound(`The log of ${scopes.join(', ')} has no trace ${trace_id}.`)
  return unavailable(`The trace ${trace_id} is in files of the archive of ${unread.join(', ')} that cannot be read.`)
}

/** Everything that the trace's decisions were made from, with the code and manifests they name. */
async function exportFrom(
  env: Env,
  trace_id: string,
  recording: Promise<TraceRecording | null>,
  reader: Reader,
): Promise<Recording | null> {
  const recorded = await recording
  if (recorded === null) return null
  const [programs, manifests] = await Promise.all([programsOf(env, recorded, reader), manifestsOf(env, recorded, reader)])
  const settings_hash = await hashJson(recorded.settings)
  return { schema: RECORDING_SCHEMA, trace_id, ...recorded, settings_hash, programs, manifests, sha256: '' }
}

/** Takes a program or manifest out of the log's parts, if its content matches its hash. */
async function taken<Value>({ parts }: TraceRecording, hash: string, hashOf: (value: Value) => Promise<string>): Promise<Value | null> {
  const value = parts[hash] as Value | undefined
  delete parts[hash]
  return value !== undefined && (await hashOf(value)) === hash ? value : null
}

/**
 * The log has the code, also of a deleted reflex; the registry alone has the code of a sealed one.
 */
export async function programsOf(env: Env, recorded: TraceRecording, reader: Reader = null): Promise<Recording['programs']> {
  const { entries } = recorded
  const named = new Map<string, { id: string; version: number; hash: string }>()
  for (const entry of entries) {
    if (entry.kind !== 'reflex-fired' && entry.kind !== 'reflex-passed') continue
    const { reflex_id: id, version, hash } = entry
    if (version !== null && hash !== null) named.set(hash, { id, version, hash })
  }
  const found = await Promise.all(
    Array.from(named.values(), async ({ id, version, hash }) => {
      const kept = await taken<RecordedProgram>(recorded, hash, ({ code }) => sha256(code))
      if (kept) return { hash, program: { ...kept, hash } }
      return { hash, program: await reflexFor(storeOf(env), { id, version }, reader) }
    }),
  )
  return Object.fromEntries(
    found.flatMap(({ hash, program }) => {
      if (program?.hash !== hash) return []
      const { id, version, state, code, sealed } = program
      return [[hash, { id, version, state, code, ...(sealed && { sealed }) }]]
    }),
  )
}

export async function manifestsOf(env: Env, recorded: TraceRecording, reader: Reader = null): Promise<Recording['manifests']> {
  const named = new Map<string, { id: string; version: string }>()
  for (const { kind, manifest_hash, manifests, skill_id, version } of recorded.entries as (LogEntry & Record<string, unknown>)[]) {
    if (typeof manifest_hash === 'string') named.set(manifest_hash, { id: String(skill_id), version: String(version) })
    if (kind === 'bulletin-built' && Array.isArray(manifests))
      for (const hash of manifests as string[]) if (!named.has(hash)) named.set(hash, { id: '', version: '' })
  }
  const found = await Promise.all(
    Array.from(named, async ([hash, { id, version }]) => {
      const kept = await taken<object>(recorded, hash, hashJson)
      if (kept) return [[hash, kept]] as const
      const skill = id === '' ? null : await skillFor(storeOf(env), { id, version }, reader)
      return skill?.hash === hash ? ([[hash, skill.manifest]] as const) : []
    }),
  )
  return Object.fromEntries(found.flat())
}
