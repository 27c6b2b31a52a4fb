import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { Json } from '../../base/json.ts'
import type { EntryHead } from '../../contract/log-entry.ts'
import type { FailedRun } from '../../contract/event-record.ts'
import type { Act } from '../../contract/reflex.ts'
import type { Event } from '../../core/event.ts'
import { ScopedLocks } from '../../core/scoped-locks.ts'
import { transitionPrior } from '../../skills/bulletin/transitions.ts'
import { placeOf } from '../../skills/manifest/compat.ts'
import type { SessionSettings } from '../../skills/session/context.ts'
import { agentRoles, entityTypesIn } from '../../skills/session/owner.ts'
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
import type { Unit } from '../storage/unit.ts'
import type { BlackboardLayers } from './blackboard-layers.ts'
import { StepJournal } from './journal.ts'
import type { RunAsker, SkillRuns } from './runs.ts'
import { SessionLog } from './session-log.ts'
import { ScopeSession } from './scope-session.ts'
import type { SkillCache } from './skill-cache.ts'
import type { ScopeFeature } from '../feature.ts'
import type { Lanes } from '../effects/wiring.ts'
import type { Env } from '../../env.ts'
import { askParser } from '../../skills/model/ask-parser.ts'
import { modelName } from '../../models/resolve-model.ts'
import { withDeadline } from '../../base/deadline.ts'

/** The owner of a session: its place in the log, and what it may use. `model` is the turn's. */
export type SessionFor = {
  head: EntryHead
  causes: readonly [string, ...string[]]
  signal?: AbortSignal
  model?: LanguageModelV4
  /** The events it acts on: their `entity_types` are cues of skills. */
  events?: readonly Event[]
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

  async #session({ head, model, events = [] }: SessionFor, asker: RunAsker): Promise<SkillSession> {
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
    return new SkillSession(of, this.#ports({ head, asker, model }))
  }

  #ports({ head, asker, model }: { head: EntryHead; asker: RunAsker; model: LanguageModelV4 | undefined }): SessionPorts {
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
      probes: (agent().probes ?? {}) as SessionPorts['probes'],
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
export function slotModel(
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
