import type { Result } from '../base/result.ts'
import type { Agent } from './define-agent.ts'
import type { ToolDefinition } from '../tools/define-tool.ts'
import { declaredTypes, type DeclaredTypes } from '../events/declared-types.ts'
import type { Settings } from '../contract/settings/settings.ts'
import type { KeyOf } from '../contract/reflex.ts'
import { callKeys } from '../tools/tool-keys.ts'

type Tools = Readonly<Record<string, ToolDefinition>>
export type FoundTool = Result<{ definition: ToolDefinition }>
/** Tools outside the Worker. `find` returns null for names of other tools. */
export type OutsideTools = { ready(): Promise<void>; available(): Tools; find(name: string): FoundTool | null }
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

  get all(): Tools {
    const { outside, agent } = this.#parts
    return { ...this.#ownTools, ...outside.available(), ...agent().tools }
  }

  /** Identifies a call, even if the scope may not make it. */
  readonly keyOf: KeyOf = (name, args) => {
    const { scope, outside, agent } = this.#parts
    const tools = { ...this.#own, ...this.#market, ...agent().tools }
    const declared = Object.hasOwn(tools, name) ? null : outside.find(name)
    const definition = declared?.ok ? declared.definition : Object.hasOwn(tools, name) ? tools[name] : undefined
    return definition ? callKeys(definition, args, scope) : null
  }

  get allowed(): readonly string[] {
    const { agent, settings, outside } = this.#parts
    const { tools, writes_reflexes = false } = agent()
    const declared = Object.keys(outside.available())
    const market = settings().market ? Object.keys(this.#market) : []
    const granted = [...Object.keys(tools), ...declared, ...(writes_reflexes ? Object.keys(this.#own) : []), ...market]
    const named = settings().tools
    if (!named) return granted
    return named.filter((name) => declared.includes(name) || Object.hasOwn(tools, name) || outside.find(name) === null)
  }

  forPlan(name: string): FoundTool {
    const { settings, outside, agent } = this.#parts
    const tools = { ...this.#ownTools, ...agent().tools }
    const declared = Object.hasOwn(tools, name) ? null : outside.find(name)
    if (declared) return !declared.ok || (settings().tools?.includes(name) ?? true) ? declared : this.#refused(name)
    const definition = this.allowed.includes(name) ? tools[name] : undefined
    return definition ? { ok: true, definition } : this.#refused(name)
  }

  find(name: string): FoundTool {
    const found = this.forPlan(name)
    if (!found.ok || found.definition.plans_only !== true) return found
    return { ok: false, detail: `tool ${name} is only for the steps of skills: propose a skill that uses it` }
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
    return this.allowed.flatMap((name) => {
      const found = this.find(name)
      return found.ok ? [[name, found.definition] satisfies [string, ToolDefinition]] : []
    })
  }

  get #ownTools(): Tools {
    return this.#parts.settings().market ? { ...this.#own, ...this.#market } : this.#own
  }

  #refused(name: string): FoundTool {
    const detail = `tool ${name} is not allowed in scope ${this.#parts.scope}; allowed: ${this.allowed.join(', ') || 'none'}`
    return { ok: false, detail }
  }
}
