import { flawsText } from '../base/error-text.ts'
import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider'
import {
  type LanguageModel,
  type LanguageModelMiddleware,
  type ToolSet,
  ToolLoopAgent,
  type ToolLoopAgentSettings,
  wrapLanguageModel,
} from 'ai'
import type { LearnedSnapshot, SnapshotOptions } from '../features/learning/snapshot.ts'
import type { SkillState } from '../contract/skill.ts'
import { languageModel } from '../skills/model/language-model.ts'
import type { Protocol } from '../skills/model/protocol.ts'
import { markWrapped, refuseWrapped } from '../skills/model/wrapped.ts'
import type { ApprovedRun } from '../skills/session/ports.ts'
import type { ProposalResult } from '../skills/session/result.ts'
import type { SkillSession } from '../skills/session/session.ts'
import { checkConfig, placeIn, type ReflexConfig } from './config.ts'
import { FollowedControlPlane } from './control-plane.ts'
import { Host, type SessionOptions } from './host.ts'
import { ownHead } from './process-log.ts'
import type { ReplayOptions, ReplayReport } from './replay.ts'
import { SkillRegistry } from './registry.ts'
import type { LogStore } from './rows.ts'
import { ProcessSpans } from './span-export.ts'
import { memoryStorage, type Storage } from './storage.ts'
import { proxyTools } from './tools/tool-proxy.ts'
import type { LoggedTurn } from './turn.ts'
import { TurnFinder } from './turn-finder.ts'

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
  turn(options?: SessionOptions & { protocol?: Protocol; agent?: string }): LoggedTurn
  approvals: Approvals
  /** Resumes interrupted runs and starts approved ones. Call it once at startup. */
  resume(options?: SessionOptions): Promise<ProposalResult[]>
  /**
   * Takes the skills of the control plane, and reports to it. Turns do this in the background; call
   * it to have the skills before the first one. False if the control plane does not answer.
   */
  sync(): Promise<boolean>
  log: LogStore
  /**
   * Decides a trace again from the log, and compares every decision. It calls no model and no tool.
   * Throws if the log does not have the trace.
   */
  replay(trace_id: string, options?: ReplayOptions): Promise<ReplayReport>
  /** Learns from the latest turns in the log. It registers nothing. */
  learnSnapshot(options?: SnapshotOptions): Promise<LearnedSnapshot>
  /** Sends the spans that wait to the collector. Call it before the process ends. */
  flush(): Promise<void>
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
  checkConfig(config)
  const stored = storageOf(config)
  const { project, otlp = {}, now = Date.now } = config
  const spans = ProcessSpans.of(stored, { project, otlp, now })
  const storage = spans ? { ...stored, log: spans.log } : stored
  const registry = new SkillRegistry(storage.skills, { probes: Object.keys(config.probes ?? {}), place: placeIn(config) })
  for (const skill of config.skills ?? []) registerOrThrow(registry, skill)
  const control_plane = config.control_plane ? new FollowedControlPlane(config, config.control_plane, { storage, registry }) : null
  const host = new Host(config, { storage, registry, control_plane })
  const { roles = [], goal_labels } = config
  const { wrap, wrapModel, wrapTools } = wrappersOf({ config, host })
  return {
    wrap,
    wrapModel,
    wrapTools: (tools) => wrapTools(tools),
    registry,
    session: (options) => host.session(options),
    turn: (options) => host.turn(options),
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
    async replay(trace_id, options) {
      // Loaded on use, as what learns.
      const { recordingOf, replayRecording } = await import('./replay.ts')
      const recording = await recordingOf(storage, trace_id)
      if (!recording) throw new TypeError(`the log has no trace ${trace_id}`)
      return replayRecording(recording, options)
    },
    async learnSnapshot(options) {
      // Loaded on use: most processes never learn.
      const { learnFromLog } = await import('../features/learning/snapshot.ts')
      const latest = (id: string) => registry.find(id)?.manifest ?? null
      return learnFromLog({ log: storage.log, place: placeIn(config), labels: goal_labels ?? [], roles, latest }, options)
    },
    flush: async () => spans?.flush(),
    close: () => storage.close(),
  }
}

type WrapParts = { config: ReflexConfig; host: Host }

function wrappersOf({ config, host }: WrapParts) {
  const wrapTools = <Tools extends ToolSet>(tools: Tools): Tools => {
    const own = ownHead(host.newTraceId())
    return proxyTools(tools, { callerFor: (call_id) => host.callerFor(call_id, own), policies: config.tool_policies ?? {} })
  }

  const wrapModel: StandaloneReflex['wrapModel'] = (model, { tools = {}, session } = {}) => {
    const inner = languageModel(model)
    refuseWrapped(inner, 'the model')
    if (session) return markWrapped(host.turn({ session }).modelOf(inner))
    const finder = new TurnFinder(() => host.turn({ tools, model: inner }))
    const found = async (params: LanguageModelV4CallOptions) => (await finder.of(params)).modelOf(inner)
    const middleware: LanguageModelMiddleware = {
      specificationVersion: 'v4',
      wrapGenerate: async ({ params }) => (await found(params)).doGenerate(params),
      wrapStream: async ({ params }) => (await found(params)).doStream(params),
    }
    return markWrapped(wrapLanguageModel({ model: inner, middleware }))
  }

  const wrap = ((parts: { agent: AnyAgent; tools?: ToolSet } | { model: LanguageModel; tools?: ToolSet }) => {
    const { tools = {} } = parts
    if (!('agent' in parts)) return { model: wrapModel(parts.model, { tools }), tools: wrapTools(tools) }
    return wrapAgent(parts.agent, (model, own) => {
      const turn = host.turn({ tools: { ...own, ...tools }, model })
      return { model: (inner) => turn.modelOf(inner), tools: wrapTools }
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
  if (typeof storage === 'object' && 'runs' in storage) return storage
  throw new TypeError(
    `there is no storage ${JSON.stringify(storage)} here: it is 'memory'; for 'local://FOLDER' and { file }, import createReflex from reflex-agents/wrap/node`,
  )
}

function registerOrThrow(registry: SkillRegistry, skill: unknown): void {
  const { manifest, state } = skill as { manifest?: unknown; state?: SkillState }
  const registered = manifest === undefined ? registry.register(skill) : registry.register(manifest, { state })
  if (registered.ok) return
  throw new TypeError(`a skill is ${registered.reason}: ${flawsText(registered.errors)}`)
}
