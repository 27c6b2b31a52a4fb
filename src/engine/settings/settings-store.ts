import type { AgentRegistry } from '../../agent/registry.ts'
import { deploymentMode } from '../../contract/origin.ts'
import { unpricedBudget } from '../../agent/unpriced-budget.ts'
import { conditionError } from '../../agent/condition.ts'
import type { Agent } from '../../agent/define-agent.ts'
import { fitsBytes } from '../../base/json.ts'
import { checkJson } from '../../base/check-json.ts'
import { messageOf } from '../../base/error-text.ts'
import { limits } from '../../base/limits.ts'
import { marketToolNames } from '../../contract/genesis.ts'
import type { Refused } from '../../base/result.ts'
import type { BlackboardProbe } from '../../contract/settings/blackboard.ts'
import type { HttpToolSetting } from '../../contract/settings/outside-tools.ts'
import {
  defaultSettings,
  effectiveGroups,
  mergeSettings,
  settings,
  type Settings,
  type SettingsPatch,
} from '../../contract/settings/settings.ts'
import type { Env } from '../../env.ts'
import { modelProblem } from '../../models/resolve-model.ts'
import type { Database, Unit } from '../../kernel/unit.ts'
import { patchRefusal } from '../../tools/tool-secrets.ts'
import { reflexToolNames } from '../reflexes/guidance.ts'

/** Settings of scopes without their own, by what the deployment gives: most are, and wake often. */
const unset = new WeakMap<Agent, { origins: Settings['origins']; settings: Settings }>()

/** All scopes of the machine read it, so that a change by one is an error. */
function frozen<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  for (const part of Object.values(value)) frozen(part)
  return Object.freeze(value)
}

type SettingsStoreParts = { database: Database; scope: string; env: Env; agents: AgentRegistry }

/** The scope's settings: its own over its agent's over the defaults. */
export class SettingsStore {
  readonly #parts: SettingsStoreParts
  #set: SettingsPatch
  #agent: Agent
  #settings: Settings
  /** Stored settings that are no longer valid, and why. Their defaults apply. */
  readonly unusable: ReadonlyMap<string, string>
  /** The agent and the settings in force. A caller reads them once for what belongs together. */
  readonly agent = (): Agent => this.#agent
  readonly settings = (): Settings => this.#settings

  constructor(parts: SettingsStoreParts) {
    this.#parts = parts
    const { set, unusable, effective } = this.#usable(parts.database.read<SettingsPatch>('settings', {}))
    this.#set = set
    this.unusable = unusable
    ;[this.#agent, this.#settings] = effective
  }

  /** True if the scope or its agent says whether it learns. */
  get saysMode(): boolean {
    return (this.#set.learning?.mode ?? this.#agent.settings?.learning?.mode) != null
  }

  change(unit: Unit, patch: SettingsPatch): { ok: true; settings: Settings } | Refused<'invalid'> {
    const set = mergeSettings(this.#set, patch)
    // Check only the patch: a secret that the deployment removes must not block other settings.
    const wrong =
      tooLarge(set) ??
      this.#wrong(set) ??
      patchRefusal(this.#parts.env, patch) ??
      this.#unservable(patch) ??
      this.#taken(patch) ??
      this.#unpriced(set, patch)
    if (wrong !== null) return { ok: false, reason: 'invalid', detail: wrong }
    unit.write('settings', set)
    this.#set = set
    ;[this.#agent, this.#settings] = this.#effective(set)
    return { ok: true, settings: this.#settings }
  }

  #wrong({ agent, when, tools, reflexes, http_tools, mcp_servers, blackboard, blackboard_probes }: SettingsPatch): string | null {
    const { agents } = this.#parts.agents
    if (agent && !agents.some(({ name }) => name === agent))
      return `agent: unknown agent "${agent}". Available: ${agents.map(({ name }) => name).join(', ')}.`
    const error = when ? conditionError(when) : null
    if (error !== null) return `when: ${error}`
    // The stored blackboard seeds each turn's, which must not fail then.
    const seed = checkJson(blackboard ?? {})
    if (!seed.ok) return `blackboard.${seed.error.path} ${seed.error.message}`
    const serving = this.#parts.agents.agentOf(this.#parts.scope, agent ?? undefined)
    const declared = http_tools ?? serving.settings?.http_tools ?? []
    const servers = (mcp_servers ?? serving.settings?.mcp_servers ?? []).map(({ name }) => `mcp.${name}.`)
    const unread = blackboard_probes?.find(({ tool, probe }) =>
      tool === undefined ? !Object.hasOwn(serving.probes ?? {}, probe ?? '') : !declared.some((one) => one.name === tool && onlyReads(one)),
    )
    if (unread !== undefined) return `blackboard_probes: ${unread.name}: ${probeFlaw(unread, serving)}`
    const known = [
      ...Object.keys(serving.tools),
      ...declared.map(({ name }) => name),
      ...servers.map((prefix) => `${prefix}…`),
      ...reflexToolNames,
      ...marketToolNames,
    ]
    const isKnown = (tool: string) => known.includes(tool) || servers.some((prefix) => tool.startsWith(prefix))
    const unknown = tools?.find((tool) => !isKnown(tool))
    if (unknown !== undefined) return `tools: unknown tool "${unknown}" of agent ${serving.name}. Available: ${known.join(', ')}.`
    const twice = reflexes?.find(({ id }, index) => reflexes.findIndex((other) => other.id === id) !== index)
    if (twice !== undefined) return `reflexes: ${twice.id} appears twice in the chain`
    return null
  }

  #taken({ event_types }: SettingsPatch): string | null {
    const taken = Object.keys(event_types ?? {}).find((type) => this.#parts.agents.eventTypes.includes(type))
    return taken === undefined ? null : `event_types: ${taken} is a type of the deployment; choose another name`
  }

  #unservable({ model }: SettingsPatch): string | null {
    const problem = model ? modelProblem(model, this.#parts.env) : null
    return problem === null ? null : `model: ${problem}`
  }

  /** Refuses what would make each event that needs the model a dead letter. */
  #unpriced(set: SettingsPatch, { agent, budget, model }: SettingsPatch): string | null {
    // An agent brings a model and a budget along.
    const isOtherModel = model !== undefined || agent !== undefined
    if (budget === undefined && !isOtherModel) return null
    const [, settings] = this.#effective(set)
    // A budget of the deployment stays, whatever the budget of the scope becomes.
    const problem = unpricedBudget(this.#parts.env, settings, isOtherModel ? this.#parts.scope : undefined)
    if (problem === null) return null
    return `${budget !== undefined ? 'budget' : model === undefined ? 'agent' : 'model'}: ${problem}`
  }

  /** Drops invalid stored settings: failing would make them uncorrectable. */
  #usable(kept: SettingsPatch): { set: SettingsPatch; unusable: Map<string, string>; effective: [Agent, Settings] } {
    const unusable = new Map<string, string>()
    const whole = this.#tried(kept)
    if (whole.ok) return { set: kept, unusable, effective: whole.effective }
    // Check each setting alone, only if the whole is invalid, to keep waking cheap.
    const set: Record<string, unknown> = {}
    for (const [name, value] of Object.entries(kept)) {
      const alone = this.#tried({ [name]: value })
      if (alone.ok) set[name] = value
      else unusable.set(name, alone.flaw)
    }
    return { set, unusable, effective: this.#effective(set) }
  }

  #tried(set: SettingsPatch): { ok: true; effective: [Agent, Settings] } | { ok: false; flaw: string } {
    try {
      return { ok: true, effective: this.#effective(set) }
    } catch (error) {
      return { ok: false, flaw: messageOf(error) }
    }
  }

  #effective(set: SettingsPatch): [Agent, Settings] {
    const agent = this.#parts.agents.agentOf(this.#parts.scope, set.agent ?? undefined)
    const origins = deploymentMode(this.#parts.env)
    const parsed = () =>
      settings.parse({
        ...defaultSettings,
        origins,
        ...agent.settings,
        ...set,
        ...effectiveGroups([agent.settings ?? {}, set]),
        agent: agent.name,
      })
    if (Object.keys(set).length > 0) return [agent, parsed()]
    const known = unset.get(agent)
    if (known?.origins === origins) return [agent, known.settings]
    const shared = { origins, settings: frozen(parsed()) }
    unset.set(agent, shared)
    return [agent, shared.settings]
  }
}

/** Limits the merged settings; each patch is limited by itself. */
const tooLarge = (set: SettingsPatch): string | null =>
  fitsBytes(JSON.stringify(set), limits.settings_bytes) ? null : `settings take at most ${limits.settings_bytes} bytes as JSON in all`

const onlyReads = ({ method, repeatable = false }: HttpToolSetting): boolean => method === 'GET' || repeatable

const probeFlaw = ({ tool, probe }: BlackboardProbe, { name, probes = {} }: Agent): string =>
  tool === undefined
    ? `the agent ${name} has no probe ${probe}. Available: ${Object.keys(probes).join(', ') || 'none'}.`
    : `${tool} is not in the setting http_tools as a tool that only reads: a GET, or repeatable.`
