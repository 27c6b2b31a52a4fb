import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { ToolSet } from 'ai'
import { AsyncLocalStorage } from 'node:async_hooks'
import { WRAPPED_CALLER, wrapped } from '../agent/wrapped.ts'
import { waitFor } from '../base/deadline.ts'
import type { Json, JsonFields } from '../base/json.ts'
import type { EntryHead, SkillEntryKind } from '../contract/log-entry.ts'
import { defaultSettings } from '../contract/settings/settings.ts'
import { newTraceId } from '../core/event.ts'
import { ScopedLocks } from '../core/scoped-locks.ts'
import { manifestHash } from '../skills/manifest/manifest.ts'
import { askParser } from '../skills/model/ask-parser.ts'
import type { Protocol } from '../skills/model/protocol.ts'
import { seedBlackboard, type Blackboard } from '../skills/plan/blackboard.ts'
import { parkedBefore } from '../skills/session/decide.ts'
import type { HostRunnerPorts, Parked, ParkedRun, RunIdentity, SessionEntry, SessionPorts } from '../skills/session/ports.ts'
import { SkillSession } from '../skills/session/session.ts'
import { childHead, runHead, sessionHead, stepHead } from '../traces/ids.ts'
import { placeIn, type ReflexConfig } from './config.ts'
import type { FollowedControlPlane } from './control-plane.ts'
import { ownHead, ProcessLog } from './process-log.ts'
import type { SkillRegistry } from './registry.ts'
import type { Storage } from './storage.ts'
import { callForPlan, whyNotForPlans } from './tools/tool-proxy.ts'
import { ToolCaller } from './tools/tool-caller.ts'
import { LoggedTurn } from './turn.ts'

export type SessionOptions = {
  blackboard?: Partial<Blackboard>
  /** The state of the agent's framework, beside what the setting `blackboard` gives. */
  agent_state?: Pick<Partial<Blackboard>, 'ctx'> | undefined
  /** Tools that plans may call, in addition to the tools of the config. */
  tools?: ToolSet
  model?: LanguageModelV4 | undefined
  trace_id?: string
}
type TurnOptions = SessionOptions & { session?: SkillSession | undefined; protocol?: Protocol | undefined; agent?: string }

/** Turns whose calls of tools are still recognized. */
const MOST_TURNS = 100

type HostParts = { storage: Storage; registry: SkillRegistry; control_plane: FollowedControlPlane | null }

/** The host of sessions outside of a scope: it gives them their ports. */
export class Host {
  readonly #config: ReflexConfig
  readonly #storage: Storage
  readonly #registry: SkillRegistry
  readonly #control_plane: FollowedControlPlane | null
  readonly #keys = new ScopedLocks()
  readonly #log: ProcessLog
  /** The span of each session, under which its entries are. */
  readonly #heads = new WeakMap<SkillSession, EntryHead>()
  readonly #bases: Record<string, object> = {}
  #turns: readonly LoggedTurn[] = []

  constructor(config: ReflexConfig, { storage, registry, control_plane }: HostParts) {
    this.#config = config
    this.#storage = storage
    this.#registry = registry
    this.#control_plane = control_plane
    const { redaction } = config
    this.#log = new ProcessLog(storage.log, { now: () => this.now(), fields: redaction?.fields })
  }

  now(): number {
    return (this.#config.now ?? Date.now)()
  }

  newId(): string {
    return (this.#config.newId ?? (() => crypto.randomUUID()))()
  }

  newTraceId(): string {
    return this.#config.newId?.() ?? newTraceId()
  }

  session({ blackboard = {}, agent_state: own, tools = {}, model, trace_id = this.newTraceId() }: SessionOptions = {}): SkillSession {
    this.#control_plane?.touch()
    const { settings: shared, agent_state, probes } = this.#config.blackboard ?? {}
    const set = asked(agent_state)
    const state = own?.ctx ? { ...set, ctx: { ...set?.ctx, ...own.ctx } } : set
    const seeded = seedBlackboard({ settings: asked(shared), agent_state: state, probes: asked(probes), override: blackboard })
    if (!seeded.ok) throw new TypeError(`the blackboard cannot be seeded: ${seeded.detail}`)
    const { goal_labels, entity_types, k_cards, tau, policy_mode } = this.#config
    const place = placeIn(this.#config)
    const ancestors = chain.getStore() ?? []
    const secret_paths = this.#registry.secretPaths()
    const settings = { trace_id, place, seeded, goal_labels, entity_types, k_cards, tau, policy_mode, ancestors, secret_paths }
    const head = ownHead(trace_id)
    const session = new SkillSession(settings, this.#ports({ head, model, tools: { ...this.#config.tools, ...tools } }))
    this.#heads.set(session, head)
    return session
  }

  turn({ session: given, protocol = this.#config.protocol ?? 'asp', agent = wrapped.name, ...options }: TurnOptions = {}): LoggedTurn {
    const session = given ?? this.session(options)
    const { roles = [], goal_labels, entity_types, max_rounds, now, onReport } = this.#config
    const of = { session, roles, goal_labels, entity_types, protocol, max_rounds, now, onReport }
    const head = this.#heads.get(session) ?? ownHead(session.trace_id)
    const turn = new LoggedTurn(of, { log: this.#log, head, agent, basis: this.#basis(agent, protocol), now: () => this.now() })
    this.#turns = [...this.#turns.slice(1 - MOST_TURNS), turn]
    return turn
  }

  /** Calls tools for the user's agent, under the turn whose model asked for the call. */
  callerFor(call_id: string, other: EntryHead): ToolCaller {
    const turn = this.#turns.findLast(({ calls }) => calls.has(call_id))
    return this.#caller(turn?.head ?? other, { cause: { by: WRAPPED_CALLER } })
  }

  /** The hash of the settings, by which a replay decides. */
  #basis(name = wrapped.name, protocol = this.#config.protocol ?? 'asp'): string {
    this.#bases[name] ??= { agent: { name, version: null }, deployment: null, ...basisIn({ ...this.#config, protocol }) }
    return this.#log.put(this.#bases[name], { is_fixed: true })
  }

  #caller(head: EntryHead, of: { cause?: { by: string } } = {}): ToolCaller {
    return new ToolCaller({
      now: () => this.now(),
      wait: (ms, signal) => this.#wait(ms, signal),
      log: ({ duration_ms, ...ended }) =>
        this.#log.append({ ...childHead(head), duration_ms }, { kind: 'effect-ended', effect_id: ended.call_id, ...ended, ...of }),
      outputs: this.#storage.outputs,
      keys: this.#keys,
      redaction: this.#config.redaction ?? {},
    })
  }

  #ports({ head, model, tools }: { head: EntryHead; model: LanguageModelV4 | undefined; tools: ToolSet }): SessionPorts {
    const { runs, approvals } = this.#storage
    const registry = this.#registry
    const log = (entry: SessionEntry) => this.#note(head, entry)
    return {
      registry: {
        index: () => registry.index(),
        find: (id, version) => registry.find(id, version),
        recentSuccess: () => runs.recentSuccess(),
        usage: (id) => runs.usage(id),
      },
      runner: (run) => this.#runner(run, { head, tools }),
      runs: {
        begin: (record) => runs.begin(record),
        end: async (run_id, { skill_id, status, ended_at }, told) => {
          await runs.end(run_id, { skill_id, status, ended_at })
          this.#control_plane?.ran(skill_id, status)
          told.forEach(log)
        },
      },
      approvals: { park: async (run, told) => this.#park(run, { approvals, told: (id) => log(told(id)) }) },
      ...this.#control_plane?.port,
      tools: () => Object.keys(tools).filter((name) => whyNotForPlans(name, tools[name]) === null),
      absence: (name) => (Object.hasOwn(tools, name) ? whyNotForPlans(name, tools[name]) : null),
      probes: this.#config.probes ?? {},
      ask: this.#config.ask ?? ((request, signal) => askParser({ model, signal }, request)),
      log,
      // A copy: readers of the log may keep objects that the caller changes later.
      redact: (value: Json) => structuredClone(this.#log.clean(value)) as Json,
      now: () => this.now(),
      newId: () => this.newId(),
    }
  }

  #runner(run: RunIdentity, { head, tools }: { head: EntryHead; tools: ToolSet }): HostRunnerPorts {
    const { journal, outputs } = this.#storage
    const { run_id } = run
    let step = runHead(head, run_id)
    return {
      journal: {
        load: (id) => journal.load(id),
        begin: (id, begin) => {
          step = stepHead(runHead(head, run_id), run_id, begin)
          return journal.begin(id, begin)
        },
        end: async (id, place, end, told) => {
          await journal.end(id, place, end)
          this.#note(head, told)
        },
      },
      callTool: (name, input, { signal, idempotence_key, hide }) =>
        chain.run(run.chain, () =>
          callForPlan(
            this.#caller(step),
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
  #park(run: ParkedRun, { approvals, told }: { approvals: Storage['approvals']; told: (approval_id: string) => void }): Parked {
    const waiting = approvals.waiting().filter(({ expires_at }) => expires_at > this.now())
    const known = parkedBefore(waiting, run, this.now())
    if (known) return known
    const approval_id = this.newId()
    approvals.put({ ...run, approval_id })
    told(approval_id)
    return { ok: true, approval_id, asked_before: false }
  }

  /** Adds an entry of a session, with what a replay needs beside it. */
  #note(head: EntryHead, { kind: name, trace_id: _trace, ...fields }: SessionEntry): void {
    const kind = name as SkillEntryKind
    this.#log.append(sessionHead(head, kind, fields), { ...fields, ...this.#beside(kind, fields), kind })
  }

  #beside(kind: SkillEntryKind, { cards }: JsonFields): JsonFields {
    const ancestors = chain.getStore() ?? []
    if (kind === 'blackboard-seeded') return { basis: this.#basis(), ...(ancestors.length > 0 && { ancestors: [...ancestors] }) }
    if (kind !== 'bulletin-built') return {}
    const shown = (cards as { skill_id: string; version: string }[]).map((card) => this.#registry.find(card.skill_id, card.version))
    return { manifests: shown.flatMap((skill) => (skill ? [manifestHash(skill.manifest)] : [])) }
  }

  #wait(ms: number, signal: AbortSignal): Promise<void> {
    return (this.#config.wait ?? waitFor)(ms, signal)
  }
}

/** A value, or what its function answers for this turn. */
const asked = <Value>(given: Value | (() => Value) | undefined): Value | undefined =>
  typeof given === 'function' ? (given as () => Value)() : given

/** The settings of a scope that decides as this process does. */
function basisIn({
  goal_labels = [],
  k_cards,
  tau,
  policy_mode,
  protocol = 'asp',
  roles = [],
  redaction,
  max_rounds,
  ...config
}: ReflexConfig) {
  const { project, compat: { env = [], toolset, repo } = {} } = config
  const given = {
    project,
    env: [...env],
    toolset,
    repo,
    goal_labels: [...goal_labels],
    k_cards,
    tau,
    policy_mode,
    skill_protocol: protocol,
  }
  const settings = { ...defaultSettings, ...given, redact: [...(redaction?.fields ?? [])], blackboard: { policy: { roles: [...roles] } } }
  return { settings, ...(max_rounds !== undefined && { max_rounds }) }
}

/** The skills that the current code runs in, outermost first: a tool may start a turn. */
const chain = new AsyncLocalStorage<readonly string[]>()
