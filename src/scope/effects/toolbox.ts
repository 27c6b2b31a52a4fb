import type { Agent } from '../../agent/define-agent.ts'
import type { ToolDefinition } from '../../tools/define-tool.ts'
import type { Settings } from '../../contract/settings.ts'
import type { FoundTool, OutsideTools } from './declared-tools.ts'

type Tools = Readonly<Record<string, ToolDefinition>>
type Parts = { scope: string; agent: () => Agent; settings: () => Settings; own: () => Tools; outside: OutsideTools }

/**
 * The tools that this scope may use, for a turn, a reflex and a plan alike: the agent's, those that the settings declare, and the scope's own where they are
 * granted. Whatever is not named is refused.
 */
export class Toolbox {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** What MCP servers offer is known once this resolves, as far as they answer. */
  async ready(): Promise<void> {
    await this.#parts.outside.ready()
  }

  get all(): Tools {
    const { own, outside, agent } = this.#parts
    return { ...own(), ...outside.available(), ...agent().tools }
  }

  get allowed(): readonly string[] {
    const { agent, settings, own, outside } = this.#parts
    const { tools, writes_reflexes = false } = agent()
    const declared = Object.keys(outside.available())
    const granted = [...Object.keys(tools), ...declared, ...(writes_reflexes ? Object.keys(own()) : [])]
    const named = settings().tools
    if (!named) return granted
    return named.filter((name) => declared.includes(name) || Object.hasOwn(tools, name) || outside.find(name) === null)
  }

  /** For a step of a skill. */
  forPlan(name: string): FoundTool {
    const { settings, outside, own, agent } = this.#parts
    const tools = { ...own(), ...agent().tools }
    const declared = Object.hasOwn(tools, name) ? null : outside.find(name)
    if (declared) return !declared.ok || (settings().tools?.includes(name) ?? true) ? declared : this.#refused(name)
    const definition = this.allowed.includes(name) ? tools[name] : undefined
    return definition ? { ok: true, definition } : this.#refused(name)
  }

  /** For a model, a trigger or a reflex. */
  find(name: string): FoundTool {
    const found = this.forPlan(name)
    if (!found.ok || found.definition.plans_only !== true) return found
    return { ok: false, detail: `tool ${name} is for the steps of skills alone: propose one that uses it` }
  }

  /** Those that a model may call, by name. */
  entries(): [string, ToolDefinition][] {
    return this.allowed.flatMap((name) => {
      const found = this.find(name)
      return found.ok ? [[name, found.definition] satisfies [string, ToolDefinition]] : []
    })
  }

  #refused(name: string): FoundTool {
    const detail = `tool ${name} is not allowed in scope ${this.#parts.scope}; allowed: ${this.allowed.join(', ') || 'none'}`
    return { ok: false, detail }
  }
}
