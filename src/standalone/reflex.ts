import type { LanguageModelV4 } from '@ai-sdk/provider'
import { type LanguageModel, type ToolSet, ToolLoopAgent, type ToolLoopAgentSettings } from 'ai'
import type { LearnedSnapshot, SnapshotOptions } from '../features/learning/snapshot.ts'
import type { SkillState } from '../contract/skill.ts'
import { languageModel } from '../skills/model/language-model.ts'
import { ModelTurn, type ModelTurnOptions, type ModelTurnAnswer } from '../skills/model/model-turn.ts'
import { modelForTurns } from '../skills/model/model.ts'
import type { ApprovedRun, HostRunnerPorts, Parked, ParkedRun, RunIdentity, SessionEntry, SessionPorts } from '../skills/session/ports.ts'
import type { ProposalResult } from '../skills/session/result.ts'
import { SkillSession } from '../skills/session/session.ts'
import { placeIn, type ReflexConfig } from './config.ts'
import { FollowedControlPlane } from './control-plane.ts'
import { SkillRegistry } from './registry.ts'
import type { LogStore } from './rows.ts'
import { memoryStorage, type Storage } from './storage.ts'
import { proxyTools, callForPlan, whyNotForPlans } from './tools/tool-proxy.ts'
import { TurnFinder } from './turn-finder.ts'
import { markWrapped, refuseWrapped } from '../skills/model/wrapped.ts'
import { AsyncLocalStorage } from 'node:async_hooks'
import { waitFor } from '../base/deadline.ts'
import type { Json, JsonFields } from '../base/json.ts'
import { ScopedLocks } from '../core/scoped-locks.ts'
import { costOf } from '../models/model-call.ts'
import { askParser } from '../skills/model/ask-parser.ts'
import { seedBlackboard, type Blackboard } from '../skills/plan/blackboard.ts'
import { parkedBefore } from '../skills/session/decide.ts'
import { redactor } from '../traces/redact.ts'
import { ToolCaller } from './tools/tool-caller.ts'

type SessionOptions = {
  blackboard?: Partial<Blackboard>
  /** Tools that plans may call, in addition to the tools of the config. */
  tools?: ToolSet
  model?: LanguageModelV4 | undefined
  trace_id?: string
}

/** Characters of the users' messages that the log keeps of a model call. */
const MOST_SAID = 2000

type HostParts = { storage: Storage; registry: SkillRegistry; control_plane: FollowedControlPlane | null }

/** The host of sessions outside of a scope: it gives them their ports. */
class Host {
  readonly #config: ReflexConfig
  readonly #storage: Storage
  readonly #registry: SkillRegistry
  readonly #control_plane: FollowedControlPlane | null
  readonly #keys = new ScopedLocks()

  constructor(config: ReflexConfig, { storage, registry, control_plane }: HostParts) {
    this.#config = config
    this.#storage = storage
    this.#registry = registry
    this.#control_plane = control_plane
  }

  now(): number {
    return (this.#config.now ?? Date.now)()
  }

  newId(): string {
    return (this.#config.newId ?? (() => crypto.randomUUID()))()
  }

  session({ blackboard = {}, tools = {}, model, trace_id = this.newId() }: SessionOptions = {}): SkillSession {
    this.#control_plane?.touch()
    const seeded = seedBlackboard({ ...this.#config.blackboard, override: blackboard })
    if (!seeded.ok) throw new TypeError(`the blackboard cannot be seeded: ${seeded.detail}`)
    const { goal_labels, entity_types, k_cards, tau, policy_mode } = this.#config
    const place = placeIn(this.#config)
    const ancestors = chain.getStore() ?? []
    const secret_paths = this.#registry.secretPaths()
    const settings = { trace_id, place, seeded, goal_labels, entity_types, k_cards, tau, policy_mode, ancestors, secret_paths }
    return new SkillSession(settings, this.#ports({ trace_id, model, tools: { ...this.#config.tools, ...tools } }))
  }

  /** Logs an answer of the model, with what it cost and the words that it answers. */
  answered(trace_id: string, model: string, { text, ...tokens }: ModelTurnAnswer): void {
    const redact = redactor(this.#config.redaction?.fields)
    const said = redact({ text: text.slice(0, MOST_SAID) }) as { text: string }
    this.#log({ ...said, kind: 'model-called', trace_id, model, usage: { ...tokens, cost_usd: costOf(model, tokens), model_calls: 1 } })
  }

  caller(trace_id: string): ToolCaller {
    return new ToolCaller({
      now: () => this.now(),
      wait: (ms, signal) => this.#wait(ms, signal),
      log: (kind, fields) => this.#log({ ...fields, kind, trace_id }),
      outputs: this.#storage.outputs,
      keys: this.#keys,
      redaction: this.#config.redaction ?? {},
    })
  }

  #ports({ trace_id, model, tools }: { trace_id: string; model: LanguageModelV4 | undefined; tools: ToolSet }): SessionPorts {
    const { runs, approvals } = this.#storage
    const registry = this.#registry
    const caller = this.caller(trace_id)
    const redact = redactor(this.#config.redaction?.fields)
    return {
      registry: {
        index: () => registry.index(),
        find: (id, version) => registry.find(id, version),
        recentSuccess: () => runs.recentSuccess(),
        usage: (id) => runs.usage(id),
      },
      runner: (run) => this.#runner(run, { tools, caller }),
      runs: {
        begin: (record) => runs.begin(record),
        end: async (run_id, { skill_id, status, ended_at }, told) => {
          await runs.end(run_id, { skill_id, status, ended_at })
          this.#control_plane?.ran(skill_id, status)
          for (const entry of told) this.#log(entry)
        },
      },
      approvals: { park: async (run, told) => this.#park(run, { approvals, told }) },
      ...this.#control_plane?.port,
      tools: () => Object.keys(tools).filter((name) => whyNotForPlans(name, tools[name]) === null),
      absence: (name) => (Object.hasOwn(tools, name) ? whyNotForPlans(name, tools[name]) : null),
      probes: this.#config.probes ?? {},
      ask: this.#config.ask ?? ((request, signal) => askParser({ model, signal }, request)),
      log: (entry) => this.#log(entry),
      // A copy: readers of the log may keep objects that the caller changes later.
      redact: (value: Json) => structuredClone(redact(value)) as Json,
      now: () => this.now(),
      newId: () => this.newId(),
    }
  }

  #runner(run: RunIdentity, { tools, caller }: { tools: ToolSet; caller: ToolCaller }): HostRunnerPorts {
    const { journal, outputs } = this.#storage
    return {
      journal: {
        load: (run_id) => journal.load(run_id),
        begin: (run_id, begin) => journal.begin(run_id, begin),
        end: async (run_id, place, end, told) => {
          await journal.end(run_id, place, end)
          this.#log(told)
        },
      },
      callTool: (name, input, { signal, idempotence_key, hide }) =>
        chain.run(run.chain, () =>
          callForPlan(
            caller,
            { name, tool: Object.hasOwn(tools, name) ? tools[name] : undefined, policy: this.#config.tool_policies?.[name] ?? {}, input },
            { signal, call_id: this.newId(), idempotence_key, hide },
          ),
        ),
      lastGood: async (key) => {
        const known = await outputs.get(`plan:${key}`)
        return known === undefined ? null : { outputs: known as JsonFields | null, detail: null }
      },
      remember: (key, output) => outputs.put(`plan:${key}`, output),
      alone: (key, work) => this.#keys.run(`plan:${key}`, work),
      wait: (ms, signal) => this.#wait(ms, signal),
    }
  }

  /** A run that already waits is not parked twice. */
  #park(run: ParkedRun, { approvals, told }: { approvals: Storage['approvals']; told: (approval_id: string) => SessionEntry }): Parked {
    const waiting = approvals.waiting().filter(({ expires_at }) => expires_at > this.now())
    const known = parkedBefore(waiting, run, this.now())
    if (known) return known
    const approval_id = this.newId()
    approvals.put({ ...run, approval_id })
    this.#log(told(approval_id))
    return { ok: true, approval_id, asked_before: false }
  }

  #log(entry: { kind: string; trace_id: string } & JsonFields): void {
    this.#storage.log.append({ ...entry, at: new Date(this.now()).toISOString() })
  }

  #wait(ms: number, signal: AbortSignal): Promise<void> {
    return (this.#config.wait ?? waitFor)(ms, signal)
  }
}

/** The skills that the current code runs in, outermost first: a tool may start a turn. */
const chain = new AsyncLocalStorage<readonly string[]>()

type AgentTurn = { model: (model: LanguageModelV4) => LanguageModelV4; tools: <Tools extends ToolSet>(tools: Tools) => Tools }

// oxlint-disable-next-line typescript/no-explicit-any -- an agent of any options, tools, context and output, as the SDK's own types take it
type AnyAgent = ToolLoopAgent<any, any, any, any>
type Settings = ToolLoopAgentSettings<never, ToolSet>
type Prepared = { model: LanguageModel; tools?: ToolSet; toolApproval?: unknown; prepareStep?: (step: unknown) => unknown }

/** Wraps an agent: each of its calls is a turn with skills. Throws if it is already wrapped. */
function wrapAgent<Wrapped extends AnyAgent>(agent: Wrapped, begin: (model: LanguageModelV4, tools: ToolSet) => AgentTurn): Wrapped {
  refuseWrapped(agent, 'the agent')
  const settings = settingsOf(agent)
  refuseWrapped(settings.model, "the agent's model")
  const prepareCall = async (call: Prepared): Promise<unknown> => {
    // The agent's own preparation may choose another model or other tools for this call.
    const own = settings.prepareCall as ((call: Prepared) => Promise<Prepared | undefined>) | undefined
    const prepared = (await own?.(call)) ?? call
    const model = languageModel(prepared.model)
    // A plan must not bypass a tool that a person has to approve.
    const turn = begin(model, prepared.toolApproval ? {} : (prepared.tools ?? {}))
    const tools = prepared.tools ? { tools: turn.tools(prepared.tools) } : {}
    return { ...prepared, model: turn.model(model), ...tools, ...stepsOf(prepared, turn) }
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the same settings except for the preparation of a call
  return markWrapped(new ToolLoopAgent({ ...settings, prepareCall } as unknown as Settings)) as unknown as Wrapped
}

/** A step may choose another model, which has the same turn. */
function stepsOf({ prepareStep }: Prepared, turn: AgentTurn): Partial<Prepared> {
  if (!prepareStep) return {}
  return {
    async prepareStep(step) {
      const prepared = (await prepareStep(step)) as { model?: LanguageModel } | undefined
      return prepared?.model ? { ...prepared, model: turn.model(languageModel(prepared.model)) } : prepared
    },
  }
}

/** The SDK keeps them to itself in its types only. */
function settingsOf(agent: AnyAgent): Settings {
  const { settings } = agent as unknown as { settings?: Settings }
  if (agent instanceof ToolLoopAgent && settings?.model) return settings
  throw new TypeError('wrap({agent}) takes a ToolLoopAgent of the AI SDK; for another agent wrap its model and tools: wrap({model, tools})')
}

export type StandaloneReflex = {
  /** Wraps an agent, or a model and its tools. Plans may use the tools too. */
  wrap: Wrap
  wrapModel(model: LanguageModel, options?: { tools?: ToolSet; session?: SkillSession }): LanguageModelV4
  wrapTools<Tools extends ToolSet>(tools: Tools): Tools
  registry: SkillRegistry
  /** A turn by hand. */
  session(options?: SessionOptions): SkillSession
  turn(options?: SessionOptions): ModelTurn
  approvals: Approvals
  /** Resumes interrupted runs and starts approved ones. Call it once at startup. */
  resume(options?: SessionOptions): Promise<ProposalResult[]>
  /**
   * Takes the skills of the control plane, and reports to it. Turns do this in the background; call
   * it to have the skills before the first one. False if the control plane does not answer.
   */
  sync(): Promise<boolean>
  log: LogStore
  /** Learns from the latest turns in the log. It registers nothing. */
  learnSnapshot(options?: SnapshotOptions): Promise<LearnedSnapshot>
  close(): void
}

/** `approve` returns null and `reject` false if the id is not waiting. */
type Approvals = {
  list(): readonly ApprovedRun[]
  approve(approval_id: string, options?: SessionOptions): Promise<ProposalResult | null>
  reject(approval_id: string): boolean
}

type Wrap = {
  <Agent extends AnyAgent>(parts: { agent: Agent; tools?: ToolSet }): Agent
  (parts: { model: LanguageModel }): { model: LanguageModelV4; tools: ToolSet }
  <Tools extends ToolSet>(parts: { model: LanguageModel; tools: Tools }): { model: LanguageModelV4; tools: Tools }
}

export function createReflex(config: ReflexConfig): StandaloneReflex {
  const storage = storageOf(config)
  const registry = new SkillRegistry(storage.skills, { probes: Object.keys(config.probes ?? {}), place: placeIn(config) })
  for (const skill of config.skills ?? []) registerOrThrow(registry, skill)
  const control_plane = config.control_plane ? new FollowedControlPlane(config, config.control_plane, { storage, registry }) : null
  const host = new Host(config, { storage, registry, control_plane })
  const { roles = [], goal_labels, entity_types, protocol, max_rounds, now, onReport } = config
  const turnFor: TurnFor = (session, model = '') => {
    const onAnswer: ModelTurnOptions['onAnswer'] = (answer) => host.answered(session.trace_id, model, answer)
    return new ModelTurn({ session, roles, goal_labels, entity_types, protocol, max_rounds, now, onReport, onAnswer })
  }

  const { wrap, wrapModel, wrapTools } = wrappersOf({ config, host, turnFor })
  return {
    wrap,
    wrapModel,
    wrapTools: (tools) => wrapTools(tools),
    registry,
    session: (options) => host.session(options),
    turn: (options) => turnFor(host.session(options)),
    approvals: approvalsOf(storage, host),
    async resume(options = {}) {
      const results: ProposalResult[] = []
      for (const record of storage.runs.unfinished()) {
        results.push(await host.session({ ...options, trace_id: record.trace_id }).resume(record))
      }
      for (const run of storage.approvals.approved()) results.push(await runApproved({ storage, host }, run, options))
      return results
    },
    sync: async () => control_plane?.sync() ?? true,
    log: storage.log,
    async learnSnapshot(options) {
      // Loaded on use: most processes never learn.
      const { learnFromLog } = await import('../features/learning/snapshot.ts')
      const latest = (id: string) => registry.find(id)?.manifest ?? null
      return learnFromLog({ log: storage.log, place: placeIn(config), labels: goal_labels ?? [], roles, latest }, options)
    },
    close: () => storage.close(),
  }
}

type TurnFor = (session: SkillSession, model?: string) => ModelTurn
type WrapParts = { config: ReflexConfig; host: Host; turnFor: TurnFor }

function wrappersOf({ config, host, turnFor }: WrapParts) {
  const wrapTools = <Tools extends ToolSet>(tools: Tools, trace_id = host.newId()): Tools =>
    proxyTools(tools, { caller: host.caller(trace_id), policies: config.tool_policies ?? {} })

  const wrapModel: StandaloneReflex['wrapModel'] = (model, { tools = {}, session } = {}) => {
    const inner = languageModel(model)
    if (session) {
      const turn = turnFor(session, inner.modelId)
      return modelForTurns(inner, () => turn)
    }
    const finder = new TurnFinder(() => turnFor(host.session({ tools, model: inner }), inner.modelId))
    return modelForTurns(inner, (params) => finder.of(params))
  }

  const wrap = ((parts: { agent: AnyAgent; tools?: ToolSet } | { model: LanguageModel; tools?: ToolSet }) => {
    const { tools = {} } = parts
    if (!('agent' in parts)) return { model: wrapModel(parts.model, { tools }), tools: wrapTools(tools) }
    return wrapAgent(parts.agent, (model, own) => {
      const session = host.session({ tools: { ...own, ...tools }, model })
      const turn = turnFor(session, model.modelId)
      return { model: (inner) => modelForTurns(inner, () => turn), tools: (all) => wrapTools(all, session.trace_id) }
    })
  }) as Wrap

  return { wrap, wrapModel, wrapTools }
}

function approvalsOf(storage: Storage, host: Host): Approvals {
  const waiting = () => {
    const kept = storage.approvals.waiting()
    const expired = host.now()
    for (const run of kept) if (run.expires_at <= expired) storage.approvals.remove(run.approval_id)
    return kept.filter(({ expires_at }) => expires_at > expired)
  }
  const isWaiting = (id: string) => waiting().some(({ approval_id }) => approval_id === id)
  return {
    list: waiting,
    async approve(approval_id, options = {}) {
      const run = isWaiting(approval_id) ? storage.approvals.approve(approval_id) : null
      return run ? runApproved({ storage, host }, run, options) : null
    },
    reject: (approval_id) => isWaiting(approval_id) && storage.approvals.remove(approval_id),
  }
}

async function runApproved({ storage, host }: { storage: Storage; host: Host }, run: ApprovedRun, options: SessionOptions) {
  const result = await host.session({ ...options, trace_id: run.trace_id }).runApproved(run)
  // A refused one has no run that would have removed it.
  storage.approvals.remove(run.approval_id)
  return result
}

function storageOf({ storage = 'memory' }: ReflexConfig): Storage {
  if (storage === 'memory') return memoryStorage()
  if ('runs' in storage) return storage
  throw new TypeError('a file is a storage in Node only: import createReflex from reflex-agents/wrap/node')
}

function registerOrThrow(registry: SkillRegistry, skill: unknown): void {
  const { manifest, state } = skill as { manifest?: unknown; state?: SkillState }
  const registered = manifest === undefined ? registry.register(skill) : registry.register(manifest, { state })
  if (registered.ok) return
  throw new TypeError(`a skill is ${registered.reason}: ${registered.errors.map(({ path, message }) => `${path} ${message}`).join('; ')}`)
}
