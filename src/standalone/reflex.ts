import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { LanguageModel, ToolSet } from 'ai'
import type { LearnedSnapshot, SnapshotOptions } from '../learning/snapshot.ts'
import type { SkillState } from '../contract/skill.ts'
import { languageModel } from '../skills/model/language-model.ts'
import { ModelTurn, type ModelTurnOptions } from '../skills/model/model-turn.ts'
import { modelForTurns } from '../skills/model/model.ts'
import type { ApprovedRun } from '../skills/session/ports.ts'
import type { ProposalResult } from '../skills/session/result.ts'
import type { SkillSession } from '../skills/session/session.ts'
import { wrapAgent, type AnyAgent } from './agent.ts'
import { placeIn, type ReflexConfig } from './config.ts'
import { FollowedControlPlane } from './control-plane.ts'
import { Host, type SessionOptions } from './host.ts'
import { SkillRegistry } from './registry.ts'
import type { LogStore } from './rows.ts'
import { memoryStorage, type Storage } from './storage.ts'
import { proxyTools } from './tools/tool-proxy.ts'
import { TurnFinder } from './turn-finder.ts'

export type Reflex = {
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

export function createReflex(config: ReflexConfig): Reflex {
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
      const { learnFromLog } = await import('../learning/snapshot.ts')
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

  const wrapModel: Reflex['wrapModel'] = (model, { tools = {}, session } = {}) => {
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
    const [kept, expired] = [storage.approvals.waiting(), host.now()]
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
