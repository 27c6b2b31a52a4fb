import { directsAs } from '../../tools/origins/origin-of.ts'
import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Json } from '../../base/json.ts'
import type { EntryHead, SkillEntryKind } from '../../contract/log-entry.ts'
import type { FailedRun } from '../../contract/event-record.ts'
import { type Act, skillName } from '../../contract/reflex.ts'
import type { Event } from '../../core/event.ts'
import { ScopedLocks } from '../../core/scoped-locks.ts'
import { transitionPrior } from '../../skills/bulletin/transitions.ts'
import { placeOf } from '../../skills/manifest/compat.ts'
import { type SessionSettings, agentRoles, entityTypesIn, actsOf } from '../../skills/session/context.ts'
import type {
  HostRunnerPorts,
  RunIdentity,
  SessionEntry,
  SessionPorts,
  ProposalRequest,
  SkillProposal,
} from '../../skills/session/ports.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import { SkillSession } from '../../skills/session/session.ts'
import { type CountedParts, countedModel } from '../turns/metered-model.ts'
import type { Unit } from '../../kernel/unit.ts'
import type { BlackboardLayers } from './blackboard-layers.ts'
import type { RunAsker, SkillRuns } from './runs.ts'
import type { SkillCache } from './skill-cache.ts'
import type { ScopeFeature } from '../feature.ts'
import type { Lanes } from '../effects/wiring.ts'
import type { Env } from '../../env.ts'
import { askParser } from '../../skills/model/ask-parser.ts'
import { modelName } from '../../models/resolve-model.ts'
import { withDeadline } from '../../base/deadline.ts'
import { noteRun } from '../../agent/turn-ending.ts'
import { argumentsHash } from '../../tools/define-tool.ts'
import type { Jobs } from '../jobs.ts'
import { manifestHash, type Manifest } from '../../skills/manifest/manifest.ts'
import { sessionHead, runHead, stepHead } from '../../traces/ids.ts'
import { messageOf } from '../../base/error-text.ts'
import { costIn } from '../../skills/runner/call-step.ts'
import type { Journal, JournalEntry, Phase, RunnerPorts, StepBegin, StepEnd } from '../../skills/runner/ports.ts'
import { CutOff } from '../../tools/may-have-happened.ts'
import { type EffectPlace, ownerOfRun, type HeldEffect } from '../effects/effect.ts'
import type { GuardedWork } from '../upkeep/guard.ts'

/** The owner of a session: its place in the log, and what it may use. `model` is the turn's. */
export type SessionFor = {
  head: EntryHead
  causes: readonly [string, ...string[]]
  signal?: AbortSignal
  model?: LanguageModelV4
  /** The events it acts on: their `entity_types` are cues of skills. */
  events?: readonly Event[]
  /** The tools and skills that the turn needs, if it named them. */
  needed?: () => ReadonlySet<string> | null
  /** The turn's acts; each skill run adds one. */
  acts?: Act[]
  /** The turn's runs that did not succeed. */
  failed_runs?: FailedRun[] | undefined
}
type SessionsParts = CountedParts &
  Pick<Lanes, 'scope' | 'database' | 'guard' | 'effects' | 'toolbox' | 'jobs' | 'settings' | 'basis'> & {
    skill_cache: SkillCache
    runs: SkillRuns
    layers: BlackboardLayers
    features: readonly Pick<ScopeFeature, 'policy' | 'park'>[]
  }

/** Gated skills in a scope. Each turn, action or call has its own session. */
export class Skills {
  readonly #parts: SessionsParts
  readonly #keys = new ScopedLocks()

  constructor(parts: SessionsParts) {
    this.#parts = parts
  }

  get agentRoles(): string[] {
    return agentRoles(this.#parts.settings())
  }

  /** True if a skill fits this scope. If not, a turn has no session. */
  async any(): Promise<boolean> {
    await this.#parts.skill_cache.catchUp({ at_once: false })
    return this.#parts.skill_cache.index().size > 0
  }

  /** Opens a session for an asker that may repeat a proposal: it gets the same run. */
  async open(owner: SessionFor): Promise<ScopeSession> {
    const { runs, jobs } = this.#parts
    const { causes, signal, acts, failed_runs } = owner
    const asker: RunAsker = { cause: causes[0], inputs_hash: '', head: owner.head, signal }
    return new ScopeSession(await this.#session(owner, asker), { runs, jobs, causes, asker, acts, failed_runs })
  }

  async propose(proposal: SkillProposal, request: ProposalRequest, owner: SessionFor): Promise<ProposalResult> {
    const session = await this.open(owner)
    return session.propose(proposal, request)
  }

  /** Opens a session for a resumed or approved run. */
  async sessionFor(owner: SessionFor): Promise<SkillSession> {
    return this.#session(owner, { cause: owner.causes[0], inputs_hash: '', head: owner.head, signal: owner.signal })
  }

  async #session(owner: SessionFor, asker: RunAsker): Promise<SkillSession> {
    const { head, model, events = [] } = owner
    const { settings, skill_cache, toolbox, layers } = this.#parts
    await Promise.all([skill_cache.catchUp({ at_once: model === undefined }), toolbox.ready(), layers.refresh(head)])
    const { goal_labels, goal_postconditions, k_cards, tau, policy_mode, refused_skills, anchors } = settings()
    const seeded = layers.seed()
    if (!seeded.ok) throw new Error(`the blackboard cannot be seeded: ${seeded.detail}`)
    const of: SessionSettings = {
      trace_id: head.trace_id,
      place: placeOf(settings()),
      seeded,
      goal_labels,
      entity_types: entityTypesIn(events),
      goal_postconditions,
      k_cards,
      tau,
      policy_mode,
      refused_skills,
      anchors,
      secret_paths: skill_cache.secretPaths(),
    }
    return new SkillSession(of, this.#ports(owner, asker))
  }

  #ports({ head, model, needed }: SessionFor, asker: RunAsker): SessionPorts {
    const { skill_cache, runs, features, toolbox, agent, log, unit, now } = this.#parts
    const session_log = new SessionLog({ ...this.#parts, shown: () => skill_cache.shown(), goodsOf: (of) => skill_cache.goodsOf(of) }, head)
    const { append } = session_log
    const policy = features.find((feature) => feature.policy)?.policy
    return {
      registry: {
        index: () => skill_cache.index(),
        find: async (id, version) => session_log.found(await skill_cache.find(id, version)),
        recentSuccess: () => runs.recentSuccess(),
        transitions: () => transitionPrior(runs.transitions(), { last: runs.latest(), manifests: skill_cache.shown() }),
        usage: (id) => runs.usage(id),
        hasOutputs: (id, key) => runs.hasOutputs(id, key),
      },
      runner: (run) => this.#runner(run, { head, append }),
      runs: runs.port(asker, append),
      approvals: {
        park: async (run, entry) => {
          const held = { ...run, head }
          const record = (opened: Unit, approval_id: string): void => append(opened, entry(approval_id))
          for (const feature of features) if (feature.park) return feature.park(held, record)
          return { ok: false, detail: 'it needs an approval, and this deployment asks nobody for one' }
        },
      },
      ...(policy && { controlPlane: policy }),
      tools: () => toolbox.allowed,
      absence: (tool) => {
        const found = toolbox.forPlan(tool)
        return found.ok ? null : found.detail
      },
      origins: (planned) => this.#parts.effects.origins.ofPlan(planned, needed?.()),
      directs: (key_id, held) => directsAs({ sender: `key:${key_id}`, roles: held }, this.#parts.settings()),
      probes: { origin: (value) => this.#parts.effects.origins.ofValue(value), ...agent().probes },
      ask: slotModel(this.#parts, { head, model, signal: asker.signal }),
      log: (entry) => unit((open) => append(open, entry)),
      redact: (value) => log.clean(value, head.trace_id) as Json,
      now,
      clock: () => performance.now(),
      newId: () => crypto.randomUUID(),
    }
  }

  #runner(run: RunIdentity, { head, append }: { head: EntryHead; append: (unit: Unit, entry: SessionEntry) => void }): HostRunnerPorts {
    const { runs } = this.#parts
    const { run_id, skill_id } = run
    const journal = new StepJournal(this.#parts, { run, head, append })
    return {
      journal,
      callTool: journal.call,
      lastGood: (key) => runs.lastGood({ run_id, skill_id }, key),
      remember: async (key, outputs) => runs.remember(skill_id, key, outputs),
      alone: (key, work) => this.#keys.run(key, work),
      wait: (ms, signal) => {
        journal.flush()
        return scheduler.wait(ms, { signal })
      },
    }
  }
}

/** Time limit, since the proposer waits. After it, the slot becomes a question. */
const TIMEOUT_MS = 10_000

/** Answers pinned parsers with the turn's or the scope's model, in the same budget and log. */
function slotModel(
  parts: CountedParts & { env: Env },
  { head, model, signal }: { head: EntryHead; model: LanguageModelV4 | undefined; signal: AbortSignal | undefined },
): SessionPorts['ask'] {
  const name = modelName(parts.env, parts.settings())
  return (request, stopped) => {
    const both = [signal, stopped].filter((one) => one !== undefined)
    return withDeadline(
      (within) => {
        const asked = model ?? countedModel(parts, { turn_id: null, head, signal: within })
        return askParser({ model: asked, name, signal: within }, request)
      },
      { ...(both.length > 0 && { signal: AbortSignal.any(both) }), timeout_ms: TIMEOUT_MS, what: `the parser's model` },
    )
  }
}

type AskerParts = {
  runs: SkillRuns
  jobs: Jobs
  /** The session's turn, action or call, and its earlier attempts. */
  causes: readonly string[]
  /** The asker under which the next run is recorded. */
  asker: RunAsker
  acts: Act[] | undefined
  failed_runs: FailedRun[] | undefined
}

/**
 * A session for an asker that may repeat a proposal: it gets the same run. Its end stops the run.
 */
class ScopeSession {
  readonly #session: SkillSession
  readonly #parts: AskerParts
  #busy = false

  constructor(session: SkillSession, parts: AskerParts) {
    this.#session = session
    this.#parts = parts
  }

  bulletin(text: string): string {
    return this.#session.bulletin(text)
  }

  async propose(proposal: SkillProposal, given: ProposalRequest): Promise<ProposalResult> {
    const { asker, acts, failed_runs } = this.#parts
    const stops = [given.signal, asker.signal].filter((signal) => signal !== undefined)
    const request = { ...given, signal: stops.length > 0 ? AbortSignal.any(stops) : undefined }
    if (request.dry_run || this.#busy) return this.#session.propose(proposal, request)
    this.#busy = true
    try {
      const result = await this.#once(proposal, request)
      acts?.push(...actsOf(proposal, result))
      if (failed_runs) noteRun(failed_runs, result)
      return result
    } finally {
      this.#busy = false
    }
  }

  async #once(proposal: SkillProposal, request: ProposalRequest): Promise<ProposalResult> {
    const { runs, jobs, causes, asker } = this.#parts
    const { id } = skillName(proposal.skill_id)
    asker.inputs_hash = argumentsHash(proposal.inputs)
    const first = runs.earlier(id, causes, asker.inputs_hash)
    // An interrupted turn's run may still be running, or be compensated: the two must not overlap.
    if (first) await jobs.idle('run', first.run_id)
    const earlier = first && runs.earlier(id, causes, asker.inputs_hash)
    if (earlier?.result) return { ...earlier.result, idempotent: true }
    if (earlier) throw new Error(`the run ${earlier.run_id} of ${id} has not come to its end: it is not run a second time`)
    return this.#session.propose(proposal, request)
  }
}

type SessionLogParts = Pick<Lanes, 'log_parts' | 'basis'> & {
  shown: () => readonly Manifest[]
  goodsOf: (manifest: Manifest) => { sealed: boolean }
}

/** The entries of one session, and the manifests and settings that a replay needs with them. */
class SessionLog {
  readonly #parts: SessionLogParts
  readonly #head: EntryHead
  /** The manifests that the session has looked up. */
  readonly #found = new Map<string, Manifest>()

  constructor(parts: SessionLogParts, head: EntryHead) {
    this.#parts = parts
    this.#head = head
  }

  found<Found extends { manifest: Manifest } | null>(skill: Found): Found {
    if (skill) this.#found.set(nameOf(skill.manifest), skill.manifest)
    return skill
  }

  readonly append = (unit: Unit, { kind: name, trace_id: _trace, ...fields }: SessionEntry): void => {
    const kind = name as SkillEntryKind
    unit.log({ ...sessionHead(this.#head, kind, fields), ...fields, ...this.#beside(unit, kind, fields), kind })
  }

  #beside(unit: Unit, kind: SkillEntryKind, fields: Record<string, unknown>): object {
    if (kind === 'blackboard-seeded') return { basis: this.#parts.basis(unit) }
    if (kind === 'bulletin-built') {
      const cards = new Set(
        (fields['cards'] as { skill_id: string; version: string }[]).map((card) => nameOf({ id: card.skill_id, ...card })),
      )
      const manifests = this.#parts.shown().filter((manifest) => cards.has(nameOf(manifest)))
      return { manifests: manifests.map((manifest) => this.#keep(unit, manifest)) }
    }
    const decided = kind === 'skill-decided' ? this.#found.get(`${String(fields['skill_id'])}@${String(fields['version'])}`) : undefined
    if (decided) this.#keep(unit, decided)
    return {}
  }

  #keep(unit: Unit, manifest: Manifest): string {
    const named = manifestHash(manifest)
    // Every reader of the log would read it.
    return this.#parts.goodsOf(manifest).sealed ? named : this.#parts.log_parts.put(unit, manifest, { named })
  }
}

const nameOf = ({ id, version }: Pick<Manifest, 'id' | 'version'>): string => `${id}@${version}`

type JournalParts = Pick<Lanes, 'database' | 'effects' | 'toolbox' | 'guard' | 'jobs' | 'unit'>
type JournalledRun = { run: RunIdentity; head: EntryHead; append: (unit: Unit, entry: SessionEntry) => void }

/**
 * The journal of one run's plan. Steps are effects: one at a time in the scope, with the tools that
 * the scope allows, and one journal row for the effect and the step that it is.
 *
 * The row's begin is written once the effect has the lane, its end together with the step's end and
 * the log entries of both. If the process dies before the first write, the step was not begun;
 * before the second, it may have happened, and the runner decides by its key; after it, it never
 * runs again (G8). `end` waits until it is on disk: a death in the next step would otherwise take
 * it back.
 */
class StepJournal implements Journal<SessionEntry> {
  readonly #parts: JournalParts
  readonly #run: JournalledRun
  readonly #work: GuardedWork
  /** The current step of the runner. */
  #step: EffectPlace | null = null
  /** The step's last effect, whose end is not written yet. */
  #held: HeldEffect | null = null
  /** Counts calls of tools, and what ends the wait for one. */
  #attempt = 0

  constructor(parts: JournalParts, run: JournalledRun) {
    this.#parts = parts
    this.#run = run
    this.#work = { kind: 'run', id: run.run.run_id }
  }

  async load(run_id: string): Promise<JournalEntry[]> {
    return this.#parts.effects.journal.steps(run_id)
  }

  /** Written together with the effect. */
  async begin(_run_id: string, { phase, index }: StepBegin): Promise<void> {
    this.#step = this.#placeOf(phase, index)
  }

  async end(_run_id: string, { phase, index }: { phase: Phase; index: number }, end: StepEnd, entry: SessionEntry): Promise<void> {
    const { effects, guard, jobs, unit, database } = this.#parts
    const held = this.#takeHeld()
    this.#step = null
    unit((ending) => {
      if (held) held.close(ending, end)
      else effects.journal.endStep(ending, this.#placeOf(phase, index), end)
      this.#run.append(ending, entry)
      // The run progressed: earlier crashes were of other work.
      guard.done(this.#work)
      jobs.progressed(ending, 'run', this.#work.id)
    }, this.#work)
    await database.sync()
  }

  readonly call: RunnerPorts['callTool'] = async (tool, input, { signal, timeout_ms, idempotence_key, hide, secrets }) => {
    const { effects, toolbox } = this.#parts
    const { run, head } = this.#run
    const found = toolbox.forPlan(tool)
    if (!found.ok) throw new Error(found.detail)
    const { definition } = found
    const step = this.#step
    if (!step) throw new Error(`${tool} is called outside of a step`)
    const attempt = (this.#attempt += 1)
    const step_head = stepHead(runHead(head, run.run_id), run.run_id, { phase: step.phase, index: step.place })
    const held = await effects.hold({
      tool,
      definition,
      input,
      step,
      key: idempotence_key,
      cause: { by: `skill:${run.skill_id}@${run.version}` },
      turn_id: step.owner,
      earlier_turns: [],
      head: step_head,
      signal,
      timeout_ms,
      hide,
      secrets,
      approved: run.approved,
    })
    this.#held = held
    // The runner stopped waiting for it.
    if (this.#attempt !== attempt) this.flush()
    if (!held.thrown) return { output: held.output, cost_usd: costIn(held.output) }
    const { error } = held.thrown
    // Cut off by the tool's own time limit, which may be shorter than the step's.
    if (held.result.status === 'unknown' && !definition.repeatable && !(error instanceof CutOff)) throw new CutOff(messageOf(error))
    throw error
  }

  /** Writes the end of an attempt that was not the step's last, before time passes. */
  flush(): void {
    const held = this.#takeHeld()
    if (held) this.#parts.unit((unit) => held.close(unit), this.#work)
  }

  #takeHeld(): HeldEffect | null {
    const held = this.#held
    this.#held = null
    this.#attempt += 1
    return held
  }

  #placeOf(phase: Phase, place: number): EffectPlace {
    return { owner: ownerOfRun(this.#run.run.run_id), phase, place }
  }
}
