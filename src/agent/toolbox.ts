import { matchesScope } from '../contract/principal.ts'
import type { Result } from '../base/result.ts'
import type { Agent, AgentDeps } from './define-agent.ts'
import { type ToolDefinition, callKeys, shownName } from '../tools/define-tool.ts'
import { declaredTypes, type DeclaredTypes } from '../events/parse-event.ts'
import type { Settings } from '../contract/settings/settings.ts'
import type { RefusedTool } from '../tools/mcp-tools.ts'
import type { KeyOf } from '../contract/reflex.ts'
import { tool, type ToolSet } from 'ai'

type Tools = Readonly<Record<string, ToolDefinition>>
export type FoundTool = Result<{ definition: ToolDefinition }>
/** Tools outside the Worker. `find` returns null for names of other tools. */
export type OutsideTools = {
  ready(): Promise<void>
  available(): Tools
  find(name: string): FoundTool | null
  /** Each is a declared tool, or an MCP server by `mcp.NAME`. */
  unavailable?(): RefusedTool[]
}
type Granted = {
  own: Tools
  allowed: readonly string[]
  named: readonly string[] | null | undefined
  /** The tools that models could not tell from an earlier one, and why. */
  hidden: ReadonlyMap<string, string>
}
type ToolboxParts = { scope: string; agent: () => Agent; settings: () => Settings; outside: OutsideTools }

/**
 * The tools that this scope may use: the agent's, the settings' tools, and its own if granted.
 */
export class Toolbox {
  readonly #parts: ToolboxParts
  #own: Tools = {}
  #market: Tools = {}

  constructor(parts: ToolboxParts) {
    this.#parts = parts
  }

  /** The scope's own tools. The tools of the market need the setting `market`. */
  offer(own: Tools, market: Tools = {}): void {
    this.#own = own
    this.#market = market
  }

  /** Resolves once the MCP servers that answer have listed their tools. */
  async ready(): Promise<void> {
    await this.#parts.outside.ready()
  }

  get unavailable(): readonly RefusedTool[] {
    const hidden = Array.from(this.#granted().hidden, ([name, reason]) => ({ name, reason }))
    return [...(this.#parts.outside.unavailable?.() ?? []), ...hidden]
  }

  get all(): Tools {
    const { outside, agent, settings } = this.#parts
    const sold = settings().market ? this.#market : {}
    return { ...this.#own, ...sold, ...outside.available(), ...agent().tools }
  }

  /** Identifies a call, even if the scope may not make it. */
  readonly keyOf: KeyOf = (name, args) => {
    const { scope, outside, agent } = this.#parts
    const tools = { ...this.#own, ...this.#market, ...agent().tools }
    const declared = Object.hasOwn(tools, name) ? null : outside.find(name)
    const definition = declared?.ok ? declared.definition : Object.hasOwn(tools, name) ? tools[name] : undefined
    return definition ? callKeys(definition, args, scope) : null
  }

  /** True for a caller's tool whose calls by a reflex a person allows first. */
  isFinal(name: string): boolean {
    return this.#parts.settings().learning.final_tools.some((pattern) => matchesScope(pattern, name))
  }

  get allowed(): readonly string[] {
    return this.#granted().allowed
  }

  forPlan(name: string): FoundTool {
    return this.#found(name, this.#granted())
  }

  find(name: string): FoundTool {
    return forModel(name, this.forPlan(name))
  }

  /** The event types of the scope's settings. */
  get declaredTypes(): DeclaredTypes {
    return declaredTypes(this.#parts.settings().event_types)
  }

  /** Names of the tools that a model may call and that the agent does not declare. */
  get offered(): string[] {
    const { tools } = this.#parts.agent()
    return this.entries().flatMap(([name]) => (Object.hasOwn(tools, name) ? [] : [name]))
  }

  /** The tools that a model may call, by name. */
  entries(): [string, ToolDefinition][] {
    const granted = this.#granted()
    return granted.allowed.flatMap((name) => {
      const found = forModel(name, this.#found(name, granted))
      return found.ok ? [[name, found.definition] satisfies [string, ToolDefinition]] : []
    })
  }

  /** Reads the settings and the agent once. `named`: what the setting `tools` names. */
  #granted(): Granted {
    const { outside } = this.#parts
    const { market, tools: named } = this.#parts.settings()
    const { tools, writes_reflexes = false } = this.#parts.agent()
    const sold = market ? this.#market : {}
    const declared = Object.keys(outside.available())
    const all = [...Object.keys(tools), ...declared, ...(writes_reflexes ? Object.keys(this.#own) : []), ...Object.keys(sold)]
    const isThere = (name: string): boolean => declared.includes(name) || Object.hasOwn(tools, name) || outside.find(name) === null
    const allowed = named ? named.filter(isThere) : all
    const [known, hidden] = [new Map<string, string>(), new Map<string, string>()]
    for (const name of allowed) {
      const shown = shownName(name)
      const first = known.get(shown) ?? name
      known.set(shown, first)
      if (first !== name) hidden.set(name, `models would know it as ${shown}, as they know ${first}: rename one`)
    }
    return { own: { ...this.#own, ...sold, ...tools }, allowed, named, hidden }
  }

  #found(name: string, { own, allowed, named, hidden }: Granted): FoundTool {
    const denied = this.#parts.settings().deny_tools?.find((pattern) => matchesScope(pattern, name))
    if (denied !== undefined) return { ok: false, detail: `tool ${name} is refused by the setting deny_tools: ${denied}` }
    const reason = hidden.get(name)
    if (reason !== undefined) return { ok: false, detail: `tool ${name} is not available: ${reason}` }
    const declared = Object.hasOwn(own, name) ? null : this.#parts.outside.find(name)
    if (declared && (!declared.ok || (named?.includes(name) ?? true))) return declared
    const definition = !declared && allowed.includes(name) ? own[name] : undefined
    if (definition) return { ok: true, definition }
    return { ok: false, detail: `tool ${name} is not allowed in scope ${this.#parts.scope}; allowed: ${allowed.join(', ') || 'none'}` }
  }
}

function forModel(name: string, found: FoundTool): FoundTool {
  if (!found.ok || found.definition.plans_only !== true) return found
  return { ok: false, detail: `tool ${name} is only for the steps of skills: propose a skill that uses it` }
}

/** The tools that a model may call, for the AI SDK. */
export function toolSet(toolbox: Toolbox, call: AgentDeps['call']): ToolSet {
  return Object.fromEntries(
    toolbox
      .entries()
      .map(([name, { description, input, shown_input = input }]) => [
        shownName(name),
        tool({ description, inputSchema: shown_input, execute: (value: unknown) => call(name, value) }),
      ]),
  )
}
