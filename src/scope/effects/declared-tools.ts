import { z } from 'zod'
import { defineTool, type ToolDefinition } from '../../tools/define-tool.ts'
import type { Env } from '../../env.ts'
import type { HttpToolSetting, McpServerSetting } from '../../contract/settings/outside-tools.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { checkUrl } from '../../tools/guarded-fetch.ts'
import { httpToolOf } from '../../tools/http-tool.ts'
import { callMcpTool } from '../../tools/mcp-call.ts'
import { McpServers, type McpTool } from './mcp-servers.ts'
import { argumentsRefusal, secretRefusal } from '../../tools/tool-secrets.ts'

export type FoundTool = { ok: true; definition: ToolDefinition } | { ok: false; detail: string }

type Parts = { scope: string; env: Env; settings: () => Settings; fetch: typeof fetch; now: () => number }

const OUTSIDE = /^(http|mcp)\./
const MCP = /^mcp\.([^.]+)\.(.+)$/

/**
 * The tools of the settings: `http.NAME` and `mcp.SERVER.TOOL`. Requests go only to allowed hosts,
 * with secrets for these hosts.
 */
export class DeclaredTools {
  readonly #parts: Parts
  readonly #servers: McpServers
  #available: { of: Settings; revision: number; tools: Record<string, ToolDefinition> } | null = null
  #http: { of: Settings; tools: ReadonlyMap<string, ToolDefinition> } | null = null

  constructor(parts: Parts) {
    this.#parts = parts
    this.#servers = new McpServers(parts)
  }

  /** Resolves once the MCP servers that answer have listed their tools. */
  async ready(): Promise<void> {
    await this.#servers.ready()
  }

  /** The tools known to be callable. Cached for the settings and the servers' lists. */
  available(): Readonly<Record<string, ToolDefinition>> {
    const settings = this.#parts.settings()
    const { revision } = this.#servers
    if (this.#available?.of !== settings || this.#available.revision !== revision) {
      this.#available = { of: settings, revision, tools: this.#collected(settings) }
    }
    return this.#available.tools
  }

  #collected({ http_tools, mcp_servers }: Settings): Record<string, ToolDefinition> {
    const offered = mcp_servers.flatMap((server) => {
      const catalogue = this.#servers.catalogue(server)
      return catalogue?.ok ? Array.from(catalogue.tools.keys(), (tool) => `mcp.${server.name}.${tool}`) : []
    })
    const found = [...http_tools.map(({ name }) => name), ...offered].map((name) => [name, this.find(name)] as const)
    return Object.fromEntries(found.flatMap(([name, tool]) => (tool?.ok ? [[name, tool.definition]] : [])))
  }

  /** Null for other names. Queries a server that has not listed its tools yet. */
  find(name: string): FoundTool | null {
    if (!OUTSIDE.test(name)) return null
    const { http_tools, mcp_servers } = this.#parts.settings()
    const [, server_name = '', tool = ''] = MCP.exec(name) ?? []
    if (tool === '') {
      const declared = http_tools.find((setting) => setting.name === name)
      return declared ? this.#found(name, declared, () => this.#httpTool(name)) : this.#undeclared(name, 'http_tools')
    }
    const server = mcp_servers.find((setting) => setting.name === server_name)
    return server ? this.#found(name, server, () => this.#mcpTool(server, tool)) : this.#undeclared(name, 'mcp_servers')
  }

  #undeclared(name: string, setting: 'http_tools' | 'mcp_servers'): FoundTool {
    return { ok: false, detail: `tool ${name} is not in scope ${this.#parts.scope}: declare it in the setting ${setting}` }
  }

  #found(name: string, declared: HttpToolSetting | McpServerSetting, make: () => FoundTool): FoundTool {
    const refusal = this.#refusal(declared)
    const found: FoundTool = refusal === null ? make() : { ok: false, detail: refusal }
    return found.ok ? found : { ok: false, detail: `tool ${name} is not available: ${found.detail}` }
  }

  #refusal(declared: HttpToolSetting | McpServerSetting): string | null {
    const checked = checkUrl(declared.url, this.#parts.settings().allowed_hosts)
    return checked.ok ? secretRefusal(this.#parts.env, declared) : `${checked.reason}; see the setting allowed_hosts`
  }

  /** Cached for the current settings: a schema is costly. */
  #httpTool(name: string): FoundTool {
    const settings = this.#parts.settings()
    if (this.#http?.of !== settings) {
      this.#http = { of: settings, tools: new Map(settings.http_tools.map((setting) => [setting.name, httpToolOf(setting, settings)])) }
    }
    const definition = this.#http.tools.get(name)
    if (!definition) throw new Error(`${name} was found in the settings, and is not there`)
    return { ok: true, definition }
  }

  #mcpTool(server: McpServerSetting, tool: string): FoundTool {
    const catalogue = this.#servers.catalogue(server)
    if (catalogue?.ok === false) return { ok: false, detail: catalogue.reason }
    const known = catalogue?.tools.get(tool)
    if (catalogue && !known) return { ok: false, detail: `the MCP server ${server.name} has no such tool` }
    return { ok: true, definition: this.#mcpDefinition(server, tool, known) }
  }

  /** The server validates the input. */
  #mcpDefinition(server: McpServerSetting, tool: string, known: McpTool | undefined): ToolDefinition {
    const { allowed_hosts } = this.#parts.settings()
    return defineTool({
      description: known?.description ?? tool,
      input: z.record(z.string(), z.json()),
      ...(known ? { shown_input: known.shown_input } : {}),
      ...(server.timeout_ms === undefined ? {} : { timeout_ms: server.timeout_ms }),
      plans_only: server.plans_only ?? false,
      secret_refusal: (env, names) => argumentsRefusal(env, server, names),
      execute: (input, { env, fetch, signal, secrets }) => callMcpTool(server, tool, input, { env, fetch, signal, allowed_hosts, secrets }),
    })
  }
}
