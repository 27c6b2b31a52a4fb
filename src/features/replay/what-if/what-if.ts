import { equivalenceOf, type ReplayReport, type ReplaySide } from '../contract/replay.ts'
import type { EffectChange, ReplayChanges } from '../contract/what-if.ts'
import type { LogEntry, ReflexEntry } from '../../../contract/log-entry.ts'
import type { ReflexReference } from '../../../contract/reflex.ts'
import { hashJson, isJsonFields, type JsonFields } from '../../../base/json.ts'
import type { ChainLink } from '../../../reflexes/decide.ts'
import type { Manifest } from '../../../skills/manifest/manifest.ts'
import { asRecorded, type Around, type Given } from '../given.ts'
import { linkOf, versionOf } from '../recorded-chain.ts'
import { RecordedModel, type Live } from '../recorded-model.ts'
import type { Basis, RecordedProgram, Recording } from '../recording.ts'
import { decideAgain } from '../replay.ts'
import { Unrecorded, Comparison } from '../report.ts'
import { Source, type ReplayHost } from '../source.ts'
import { basisWith, settingsChange } from './changes.ts'
import { addedUsage } from '../../../traces/usage.ts'
import type { LiveModel } from './live-model.ts'
import { World } from './world.ts'

/** Compares what was decided, not what it was decided from, which the changes exchange. */
class Decisions extends Comparison {
  override compare(...[at, kind, { recorded, replayed }]: Parameters<Comparison['compare']>): boolean {
    return super.compare(at, kind, { recorded: decidedIn(recorded), replayed: decidedIn(replayed) })
  }

  override compareMasked(...[at, kind, { recorded, replayed }]: Parameters<Comparison['compareMasked']>): void {
    super.compareMasked(at, kind, { recorded: decidedIn(recorded), replayed: decidedIn(replayed) })
  }
}

/** Entries of skill sessions as far as they are decisions; other values as they are. */
function decidedIn(value: unknown): unknown {
  if (!isJsonFields(value) || typeof value['kind'] !== 'string') return value
  const { kind, decision } = value
  if (kind === 'skill-decided' && isJsonFields(decision)) return gateDecision(value, decision)
  const { manifest_hash: _hash, ...rest } = value
  return rest
}

/** Scores, checks and their texts name thresholds, which differ though the verdict may not. */
const gateDecision = ({ skill_id, enforced }: JsonFields, { verdict, stage, questions }: JsonFields) => ({
  skill_id,
  enforced,
  verdict,
  stage,
  questions,
})

export type WhatIfProgram = RecordedProgram & { hash: string }
/** The changes with what they name: parsed, and with the code that the recording may lack. */
export type Resolved = {
  changes: ReplayChanges
  changes_hash: string
  /** Manifests of the changes, by the id of their skill. */
  manifests: ReadonlyMap<string, Manifest>
  /** Code of the changes, by the id of its reflex. */
  code: ReadonlyMap<string, WhatIfProgram>
  /** Code of reflexes that did not run when it was recorded, by `id` or `id@version`. */
  programs: ReadonlyMap<string, WhatIfProgram>
  live: LiveModel | null
}

/** Decides again from a recording with named changes, all else as recorded. */
export async function whatIf(recording: Recording, resolved: Resolved, host: ReplayHost): Promise<ReplayReport> {
  const around = aroundOf(recording, resolved, host)
  const { recorded, replayed } = await decideAgain(around)
  const { compared, changed, divergences, unknown } = around.comparison
  const { live, changes_hash } = resolved
  return {
    trace_id: recording.trace_id,
    mode: 'what_if',
    complete: recording.complete,
    equivalent: equivalenceOf({ changed, unknown: unknown.length }),
    compared,
    changed,
    divergences,
    unknown,
    recorded,
    replayed: around.side(recorded, replayed),
    changes_hash,
    effects: around.effects(),
    ...(live && { spent: live.spent }),
  }
}

type WhatIf = Around & {
  world: World
  effects: () => EffectChange[]
  side: (recorded: ReplaySide, replayed: ReplaySide) => ReplaySide
}

/** `earlier` is the world of the part of the range before. */
export function aroundOf(recording: Recording, resolved: Resolved, host: ReplayHost, earlier?: World): WhatIf {
  const source = new Source(recording)
  const comparison = new Decisions()
  const recorded = asRecorded(source)
  const patch = settingsChange(resolved.changes)
  const bases = new Map<Basis, Basis>()
  const live = liveOf(resolved)
  const parts = {
    link: (reference: ReflexReference, steps: readonly ReflexEntry[]) =>
      linkWith(reference, steps, { scope: recording.scope, given, resolved }),
    clean: host.cleaner(recording.settings),
    cannot: (at: LogEntry, kind: string, reason: string) => comparison.cannot(at, kind, reason),
  }
  const world = earlier ?? new World(parts)
  world.enter(parts)
  const given: Given = {
    ...recorded,
    basisOf(entry) {
      const basis = recorded.basisOf(entry)
      if (!basis || !patch) return basis
      const changed = bases.get(basis) ?? basisWith(basis, patch)
      bases.set(basis, changed)
      return changed
    },
    manifest(hash) {
      const own = recorded.manifest(hash)
      const changed = resolved.manifests.get(own.id)
      return changed ? { ...changed, version: own.version } : own
    },
    model: (parts) => new RecordedModel({ ...parts, live }),
    departures: world,
  }
  const effects = () => [...world.effects, ...callEffects(comparison)]
  const side = (recorded: ReplaySide, { usage, duration_ms }: ReplaySide): ReplaySide => {
    const asked = resolved.live?.taken()
    return {
      usage: asked ? addedUsage(usage, asked) : usage,
      effects: effects().reduce((count, { change, act }) => count + (act === 'call_tool' ? SIGN[change] : 0), recorded.effects),
      duration_ms: Math.max(0, duration_ms) + (asked?.duration_ms ?? 0),
      unanswered: live.unanswered,
    }
  }
  return { source, host, given, comparison, world, side, effects }
}

const SIGN = { appears: 1, vanishes: -1 } as const

function liveOf({ changes, live }: Resolved): Live {
  const name = changes.model ?? null
  const why = name === null ? 'the prompt differs from the recorded one' : `the answers of ${name} were not recorded`
  return { name, ask: live && ((options) => live.ask(options)), why: `${why}: a budget allows a replay to ask the model`, unanswered: 0 }
}

/** Calls that one side lacks, as the replay of turns and plans found them. */
function callEffects({ divergences }: Comparison): EffectChange[] {
  return divergences.flatMap(({ span_id, kind, path, recorded, replayed }): EffectChange[] => {
    if (kind !== 'effect' || path !== '') return []
    const change = recorded === null ? 'appears' : 'vanishes'
    return [{ span_id, change, act: 'call_tool', content: recorded ?? replayed }]
  })
}

type From = { scope: string; given: Given; resolved: Resolved }

/** The version that would act: of the changes, else as recorded, else of the registry. */
function linkWith(reference: ReflexReference, steps: readonly ReflexEntry[], { scope, given, resolved }: From): ChainLink {
  const { code, programs } = resolved
  const link = linkOf(reference, steps, { scope, given })
  const changed = code.get(reference.id)
  const recorded = link.acting && (reference.version === undefined || reference.version === link.acting.version)
  if (recorded && !changed) return link
  const ran = steps.some(({ reflex_id, state }) => reflex_id === reference.id && state !== 'shadow')
  if (ran && !link.acting && !changed) return link
  const name = reference.version === undefined ? reference.id : `${reference.id}@${reference.version}`
  const program = changed ?? programs.get(name)
  if (!program) return unknownLink(link)
  const { id, version, hash } = program
  const acting = {
    ...versionOf({ reflex_id: id, version, hash } as ReflexEntry, 'active', { scope, given: { ...given, program: () => program } }),
  }
  return { reference, acting, watching: link.watching, absent: null }
}

const unknownLink = (link: ChainLink): ChainLink => ({
  ...link,
  get absent(): never {
    throw new Unrecorded(`the reflex ${link.reference.id} did not run when this was recorded, and its code is not known`)
  },
})

export async function resolvedOf(changes: ReplayChanges, parts: Omit<Resolved, 'changes' | 'changes_hash'>): Promise<Resolved> {
  return { ...parts, changes, changes_hash: await hashJson(changes) }
}
