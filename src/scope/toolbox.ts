import type { Agent } from '../agents/define-agent.ts'
import type { ToolDefinition } from '../agents/define-tool.ts'
import type { Settings } from '../protocol/settings.ts'

type Tools = Readonly<Record<string, ToolDefinition>>
type Parts = { scope: string; agent: () => Agent; settings: () => Settings; own: () => Tools }

/** The tools that this scope may use, for a turn and for a reflex alike: the agent's, and the scope's own where they are granted. Whatever is not named is refused. */
export class Toolbox {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get all(): Tools {
    return { ...this.#parts.own(), ...this.#parts.agent().tools }
  }

  get allowed(): readonly string[] {
    const { agent, settings, own } = this.#parts
    const { tools, writes_reflexes = false } = agent()
    return settings().tools ?? [...Object.keys(tools), ...(writes_reflexes ? Object.keys(own()) : [])]
  }

  /** `in_plan`: for a step of a skill, which alone may call what is for plans only. */
  find(name: string, { in_plan = false } = {}): { ok: true; definition: ToolDefinition } | { ok: false; detail: string } {
    const { allowed, all } = this
    const definition = allowed.includes(name) && Object.hasOwn(all, name) ? all[name] : undefined
    if (definition?.plan_only && !in_plan) return { ok: false, detail: `tool ${name} is for the plans of skills only: propose one` }
    if (definition) return { ok: true, definition }
    return { ok: false, detail: `tool ${name} is not allowed in scope ${this.#parts.scope}; allowed: ${allowed.join(', ') || 'none'}` }
  }

  /** Those that a turn may use, by name. */
  entries(): [string, ToolDefinition][] {
    const { all } = this
    return this.allowed.flatMap((name) => (all[name] && !all[name].plan_only ? [[name, all[name]] satisfies [string, ToolDefinition]] : []))
  }
}
