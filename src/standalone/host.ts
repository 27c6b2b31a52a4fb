import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { ToolSet } from 'ai'
import { AsyncLocalStorage } from 'node:async_hooks'
import { waitFor } from '../base/deadline.ts'
import type { Json, JsonFields } from '../base/json.ts'
import { ScopedLocks } from '../core/scoped-locks.ts'
import { costOf } from '../models/model-call.ts'
import { askParser } from '../skills/model/ask-parser.ts'
import type { Answer } from '../skills/model/model-turn.ts'
import { seedBlackboard, type Blackboard } from '../skills/plan/blackboard.ts'
import { parkedBefore } from '../skills/session/approval.ts'
import type { HostRunnerPorts, Parked, ParkedRun, RunIdentity, SessionEntry, SessionPorts } from '../skills/session/ports.ts'
import { SkillSession } from '../skills/session/session.ts'
import { redactor } from '../traces/redact.ts'
import { placeIn, type ReflexConfig } from './config.ts'
import type { FollowedControlPlane } from './control-plane.ts'
import type { SkillRegistry } from './registry.ts'
import type { Storage } from './storage.ts'
import { ToolCaller } from './tools/tool-caller.ts'
import { callForPlan, whyNotForPlans } from './tools/tool-proxy.ts'

export type SessionOptions = {
  blackboard?: Partial<Blackboard>
  /** Tools that plans may call, in addition to those of the config. */
  tools?: ToolSet
  model?: LanguageModelV4 | undefined
  trace_id?: string
}

/** Characters of the users' messages that the log keeps of a model call. */
const MOST_SAID = 2000

type HostParts = { storage: Storage; registry: SkillRegistry; control_plane: FollowedControlPlane | null }

/** Where sessions live outside of a scope: it gives them their ports. */
export class Host {
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
    const [ancestors, secret_paths] = [chain.getStore() ?? [], this.#registry.secretPaths()]
    const settings = { trace_id, place, seeded, goal_labels, entity_types, k_cards, tau, policy_mode, ancestors, secret_paths }
    return new SkillSession(settings, this.#ports({ trace_id, model, tools: { ...this.#config.tools, ...tools } }))
  }

  /** Logs an answer of the model, with what it cost and the words that it answers. */
  answered(trace_id: string, model: string, { text, ...tokens }: Answer): void {
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
