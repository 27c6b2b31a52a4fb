import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { FoundTool } from '../../agent/toolbox.ts'
import { canonicalJson, type Json } from '../../base/json.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { SkillIndex } from '../../skills/bulletin/skill-index.ts'
import type { ProbeCall } from '../../skills/cel/probes.ts'
import type { GateDecision } from '../../skills/gate/decision.ts'
import { placeOf } from '../../skills/manifest/compat.ts'
import type { Manifest } from '../../skills/manifest/manifest.ts'
import { askParser } from '../../skills/model/ask-parser.ts'
import type { SessionSettings } from '../../skills/session/context.ts'
import type { FoundSkill, Parked, ParkedRun, RunRecord, SessionEntry, SessionPorts } from '../../skills/session/ports.ts'
import { Unrecorded, type Comparison } from '../report.ts'
import type { Given } from '../given.ts'
import type { Source } from '../source.ts'
import { RecordedRun } from './run-ports.ts'
import type { Decided, SessionRecord } from './session-record.ts'

export type SessionParts = {
  source: Source
  given: Given
  comparison: Comparison
  record: SessionRecord
  settings: Settings
  clean: (value: unknown) => unknown
  toolOf: (name: string) => FoundTool
  model: LanguageModelV4
  /** Types of the entities that the owner's events name. */
  entity_types: readonly string[]
  /** Stops a run as it was stopped when it was recorded. */
  abort: () => void
  /** Reasons for which the session cannot be repeated. */
  missing: string[]
  /** Receives the runs that wait for an approval. */
  parked: Map<string, ParkedRun>
}

/** The settings of a session, with the blackboard as it was seeded: nothing is read again. */
export function sessionSettings({ record: { seed }, settings, entity_types }: SessionParts): SessionSettings {
  const { goal_labels, goal_postconditions, k_cards, tau, policy_mode, refused_skills, anchors } = settings
  const { blackboard, sources, ages_ms, omitted, overridden } = seed as unknown as SessionSettings['seeded']
  return {
    trace_id: seed.trace_id,
    place: placeOf(settings),
    seeded: { blackboard, sources, ages_ms: ages_ms ?? {}, omitted: omitted ?? {}, overridden },
    goal_labels,
    entity_types,
    goal_postconditions,
    k_cards,
    tau,
    policy_mode,
    refused_skills,
    anchors,
  }
}

/** The ports of a session, which answer as they did when it was recorded. Nothing is written. */
export function sessionPorts(parts: SessionParts): SessionPorts {
  const { record, comparison, clean, model, missing } = parts
  const write = (entry: SessionEntry) => {
    if (missing.length === 0 && entry.kind !== 'blackboard-seeded') record.compare(entry, comparison)
  }
  const lacks = (reason: string): never => {
    missing.push(reason)
    throw new Unrecorded(reason)
  }
  const facts = (): Decided => record.decided() ?? lacks('a skill was proposed on which no decision was recorded')
  const clock = new RunClock(record)
  return {
    registry: {
      index: () => shownSkills(parts),
      find: (id) => foundSkill(parts, id),
      recentSuccess: () => recentSuccess(record),
      transitions: () => new Map(Object.entries((record.next('bulletin-built')?.['transitions'] ?? {}) as Record<string, number>)),
      usage: () => {
        const { last_run_at, running } = facts().request
        return { last_run_at, running }
      },
    },
    runner: ({ run_id }) => new RecordedRun(run_id, { ...parts, write }),
    runs: {
      begin: async ({ run_id }: RunRecord) => clock.begin(run_id),
      end: async (_run_id, _end, told) => {
        for (const entry of told) write(entry)
        clock.end()
      },
    },
    approvals: { park: async (run, told) => park(parts, run, (approval_id) => write(told(approval_id))) },
    controlPlane: async () => facts().request.control_plane ?? null,
    tools: () => facts().request.tools,
    // Older recordings do not tell whether it does.
    whyCounts: () => facts().request.why_counts !== false,
    absence: (tool) => facts().request.absent_tools?.[tool] ?? null,
    probes: recordedProbes(record),
    ask: async (request, signal) => {
      const refusal = parserRefusal(record, request.model)
      if (refusal !== null) throw new Error(refusal)
      return askParser({ model, name: request.model, signal }, request)
    },
    log: write,
    redact: (value) => clean(value) as Json,
    now: () => clock.read() ?? record.decided()?.request.now ?? Date.parse(record.seed.at),
    newId: () => record.nextId(),
  }
}

/** Times are those that the run read; without them, time stands still. */
class RunClock {
  readonly #record: SessionRecord
  #left: number[] | null = null

  constructor(record: SessionRecord) {
    this.#record = record
  }

  begin(run_id: string): void {
    const end = this.#record.left.find(({ kind, run_id: of }) => of === run_id && kind === 'skill-applied')
    this.#left = [...((end?.['clock'] as number[] | undefined) ?? [0])]
  }

  end(): void {
    this.#left = null
  }

  /** Null outside of a run. */
  read(): number | null {
    if (!this.#left) return null
    const [next = 0] = this.#left
    if (this.#left.length > 1) this.#left.shift()
    return next
  }
}

/** The skills whose cards the bulletin had. Others did not compete, or are not in the recording. */
function shownSkills({ record, given }: SessionParts): SkillIndex {
  const hashes = (record.next('bulletin-built')?.['manifests'] ?? []) as string[]
  return new SkillIndex(hashes.map((hash) => ({ manifest: given.manifest(hash), state: 'active' })))
}

/** The version that the proposal meant; null if a proposal was refused because there was none. */
function foundSkill({ record, given, missing }: SessionParts, id: string): FoundSkill | null {
  const decided = record.decided(id)
  if (decided?.['skill_id'] === id) {
    const manifest = manifestOf(decided, given, missing)
    return { manifest, state: decided.request.state }
  }
  const refused = record.next('skill-refused')
  if (refused?.['skill_id'] === id && String(refused['reason']).startsWith('there is no skill')) return null
  const reason = `the skill ${id} was not proposed when the session was recorded`
  missing.push(reason)
  throw new Unrecorded(reason)
}

function manifestOf({ manifest_hash }: Decided, given: Given, missing: string[]): Manifest {
  try {
    return given.manifest(manifest_hash)
  } catch (error) {
    if (error instanceof Unrecorded) missing.push(error.message)
    throw error
  }
}

/** Skills that ran with success lately, as far as the next entry names them. */
function recentSuccess(record: SessionRecord): ReadonlySet<string> {
  const next = record.next('bulletin-built', 'skill-decided')
  if (next?.kind === 'bulletin-built') return new Set((next['recent_success'] ?? []) as string[])
  const decided = record.decided()
  return new Set(decided?.request.recent_success ? [String(decided['skill_id'])] : [])
}

/** Probes that answer as in the decision or guard that comes next. */
function recordedProbes(record: SessionRecord): SessionPorts['probes'] {
  const answer = (name: string, args: Json[]): unknown => {
    const next = record.next('skill-decided', 'skill-guard-evaluated')
    const calls = next?.kind === 'skill-guard-evaluated' ? next['probes'] : (next?.['decision'] as GateDecision | undefined)?.probes
    const own = ((calls ?? []) as ProbeCall[]).filter(({ probe }) => probe === name)
    const call = own.find((one) => canonicalJson(one.args) === canonicalJson(args)) ?? own[0]
    if (!call) throw new Error('this call was not recorded')
    if ('error' in call) throw new Error(call.error)
    return call.result
  }
  const names = new Set(record.entries.flatMap(probesIn).map(({ probe }) => probe))
  return Object.fromEntries(Array.from(names, (name) => [name, (...args: Json[]) => answer(name, args)]))
}

const probesIn = ({ kind, decision, probes }: { kind: string; [field: string]: unknown }): ProbeCall[] =>
  (kind === 'skill-decided' ? (decision as GateDecision).probes : kind === 'skill-guard-evaluated' ? (probes as ProbeCall[]) : undefined) ??
  []

/** The reason why a parser's model was not asked: the deployment had another one. */
function parserRefusal(record: SessionRecord, model: string): string | null {
  const attempts = (record.next('skill-slots-parsed')?.['attempts'] ?? []) as { model: string; detail: string | null }[]
  return attempts.find((one) => one.model === model && one.detail?.startsWith('the parser is pinned to'))?.detail ?? null
}

function park({ record, missing, parked }: SessionParts, run: ParkedRun, told: (approval_id: string) => void): Parked {
  const asked = record.next('approval-requested', 'skill-refused')
  if (asked?.kind === 'skill-refused') return { ok: false, detail: String(asked['reason']) }
  const approval_id = asked?.['approval_id']
  if (typeof approval_id !== 'string') {
    const reason = 'the run waited for an approval that an earlier proposal had asked for'
    missing.push(reason)
    throw new Unrecorded(reason)
  }
  parked.set(approval_id, run)
  told(approval_id)
  return { ok: true, approval_id, asked_before: false }
}
