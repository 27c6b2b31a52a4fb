import { reflexes, skills } from '../../artifacts/kinds.ts'
import { hashJson, jsonValue } from '../../base/json.ts'
import type { LogEntry } from '../../contract/log-entry.ts'
import type { TraceRecording } from '../../contract/scope-api.ts'
import type { Env } from '../../env.ts'
import { RECORDING_SCHEMA, seal, type Recording } from '../../replay/recording.ts'
import { storeOf } from '../../store/store.ts'
import { notFound } from '../problems/refusals.ts'

/** Everything that the trace's decisions were made from, with the code and manifests they name. */
export async function exportTrace(env: Env, scope: string, trace_id: string): Promise<Recording> {
  const recorded = jsonValue(await env.SCOPE.getByName(scope).recording(trace_id)) as TraceRecording | null
  if (recorded === null) throw notFound(`The log of the scope ${scope} has no trace ${trace_id}.`)
  const [programs, manifests] = await Promise.all([programsOf(env, recorded.entries), manifestsOf(env, recorded.entries)])
  const settings_hash = await hashJson(recorded.settings)
  return seal({ schema: RECORDING_SCHEMA, trace_id, ...recorded, settings_hash, programs, manifests })
}

/** A version never changes, but its reflex may have been deleted and registered again. */
async function programsOf(env: Env, entries: readonly LogEntry[]): Promise<Recording['programs']> {
  const named = new Map<string, { id: string; version: number; hash: string }>()
  for (const entry of entries) {
    if (entry.kind !== 'reflex-fired' && entry.kind !== 'reflex-passed') continue
    const { reflex_id: id, version, hash } = entry
    if (version !== null && hash !== null) named.set(hash, { id, version, hash })
  }
  const found = await Promise.all(
    Array.from(named.values(), async ({ id, version, hash }) => ({ hash, program: await reflexes.find(storeOf(env), id, version) })),
  )
  return Object.fromEntries(
    found.flatMap(({ hash, program }) => {
      if (program?.hash !== hash) return []
      const { id, version, state, code } = program
      return [[hash, { id, version, state, code }]]
    }),
  )
}

async function manifestsOf(env: Env, entries: readonly LogEntry[]): Promise<Recording['manifests']> {
  const named = new Map<string, { id: string; version: string }>()
  for (const entry of entries) {
    if (!('manifest_hash' in entry) || typeof entry['manifest_hash'] !== 'string') continue
    named.set(entry['manifest_hash'], { id: String(entry['skill_id']), version: String(entry['version']) })
  }
  const found = await Promise.all(
    Array.from(named, async ([hash, { id, version }]) => ({ hash, skill: await skills.find(storeOf(env), id, version) })),
  )
  return Object.fromEntries(found.flatMap(({ hash, skill }) => (skill?.hash === hash ? [[hash, skill.manifest]] : [])))
}
