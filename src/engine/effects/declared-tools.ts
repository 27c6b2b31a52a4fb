import type { FoundTool } from '../../agent/toolbox.ts'
import { z } from 'zod'
import { defineTool, type ToolDefinition } from '../../tools/define-tool.ts'
import type { Env } from '../../env.ts'
import { isOutside, type HttpToolSetting, type McpServerSetting } from '../../contract/settings/outside-tools.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { CallerTools } from '../../tools/caller-tools.ts'
import { checkUrl } from '../../tools/guarded-fetch.ts'
import { httpToolOf } from '../../tools/http-tool.ts'
import { callMcpTool, type Hide, withMcpServer } from '../../tools/mcp-call.ts'
import type { RefusedTool } from '../../tools/mcp-tools.ts'
import { argumentsRefusal, secretRefusal } from '../../tools/tool-secrets.ts'
import { asSchema, type Schema, type ToolSet } from 'ai'
import { messageOf } from '../../base/error-text.ts'
import { withDeadline } from '../../base/deadline.ts'

type DeclaredToolsParts = {
  scope: string
  env: Env
  settings: () => Settings
  fetch: typeof fetch
  now: () => number
  caller_tools?: Pick<CallerTools, 'find'>
}

const MCP = /^mcp\.([^.]+)\.(.+)$/

/**
 * The tools of the settings: `http.NAME` and `mcp.SERVER.TOOL`. Requests go only to allowed hosts,
 * with secrets for these hosts.
 */
export class DeclaredTools {
  readonly #parts: DeclaredToolsParts
  readonly #servers: McpServers
  #available: { of: Settings; revision: number; tools: Record<string, ToolDefinition> } | null = null
  #http: { of: Settings; tools: ReadonlyMap<string, ToolDefinition> } | null = null

  constructor(parts: DeclaredToolsParts) {
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

  /** The declared tools and servers that nothing can call. */
  unavailable(): { name: string; reason: string }[] {
    const { http_tools, mcp_servers } = this.#parts.settings()
    const declared = [
      ...http_tools.map((tool) => ({ name: tool.name, reason: this.#refusal(tool) })),
      ...mcp_servers.flatMap((server) => this.#unavailableOf(server)),
    ]
    return declared.flatMap(({ name, reason }) => (reason === null ? [] : [{ name, reason }]))
  }

  #unavailableOf(server: McpServerSetting): { name: string; reason: string }[] {
    const whole = `mcp.${server.name}`
    const refusal = this.#refusal(server)
    const catalogue = refusal === null ? this.#servers.catalogue(server) : { ok: false as const, reason: refusal }
    if (catalogue?.ok === false) return [{ name: whole, reason: catalogue.reason }]
    return Array.from(catalogue?.refused ?? [], ([tool, reason]) => ({ name: `${whole}.${tool}`, reason }))
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
    if (!isOutside(name)) return this.#parts.caller_tools?.find(name) ?? null
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
    if (catalogue && !known) {
      return { ok: false, detail: catalogue.refused.get(tool) ?? `the MCP server ${server.name} has no such tool` }
    }
    return { ok: true, definition: this.#mcpDefinition(server, tool, known) }
  }

  /** The server validates the input. */
  #mcpDefinition(server: McpServerSetting, tool: string, known: McpTool | undefined): ToolDefinition {
    const { allowed_hosts } = this.#parts.settings()
    const { destinations = {}, untrusted } = server
    return defineTool({
      description: known?.description ?? tool,
      input: z.record(z.string(), z.json()),
      ...(known && { shown_input: known.shown_input, destroys: known.destroys }),
      ...(server.timeout_ms === undefined ? {} : { timeout_ms: server.timeout_ms }),
      plans_only: server.plans_only ?? false,
      ...(Object.hasOwn(destinations, tool) && { destinations: destinations[tool] ?? [] }),
      ...(untrusted !== undefined && { untrusted: typeof untrusted === 'boolean' ? untrusted : untrusted.includes(tool) }),
      secret_refusal: (env, names) => argumentsRefusal(env, server, names),
      execute: (input, { env, scope, fetch, signal, secrets }) =>
        callMcpTool(server, tool, input, { env, scope, fetch, signal, allowed_hosts, secrets }),
    })
  }
}

/** A hint that makes the rules stricter is believed, whoever the server is. */
function destroys({ metadata }: ToolSet[string]): boolean {
  const { annotations } = (metadata ?? {}) as { annotations?: { destructiveHint?: boolean } }
  return annotations?.destructiveHint === true
}

/** Lifetime of a server's tool list, and the pause after a server was unavailable. */
const FRESH_MS = 600_000
const AWAY_MS = 30_000
const TIMEOUT_MS = 5000
/** Tools beyond this number are refused. */
const MOST_TOOLS = 100

type McpTool = { description: string; shown_input: Schema; destroys: boolean }
/** A server's tools, or why they are unavailable. */
type McpCatalogue = { ok: true; tools: ReadonlyMap<string, McpTool>; refused: ReadonlyMap<string, string> } | { ok: false; reason: string }

type Known = { catalogue: McpCatalogue; until: number; asked: string }

/** The tools of the scope's MCP servers. Stale lists are queried with a time limit. */
export class McpServers {
  readonly #parts: DeclaredToolsParts
  readonly #known = new Map<string, Known>()
  readonly #asking = new Map<string, Promise<void>>()
  /** Increments with each new list. */
  revision = 0

  constructor(parts: DeclaredToolsParts) {
    this.#parts = parts
  }

  /** Null if the server was not queried under its current setting. */
  catalogue(server: McpServerSetting): McpCatalogue | null {
    const known = this.#known.get(server.name)
    return known?.asked === this.#question(server) ? known.catalogue : null
  }

  /** Refreshes stale lists. Never rejects: an unavailable server is recorded as such. */
  async ready(): Promise<void> {
    const { settings, now } = this.#parts
    for (const [name, { asked }] of this.#known) {
      if (!settings().mcp_servers.some((server) => this.#question(server) === asked)) this.#known.delete(name)
    }
    const stale = settings().mcp_servers.filter(
      (server) => this.catalogue(server) === null || (this.#known.get(server.name)?.until ?? 0) <= now(),
    )
    await Promise.all(stale.map((server) => this.#ask(server)))
  }

  #question(server: McpServerSetting): string {
    return JSON.stringify([server, this.#parts.settings().allowed_hosts])
  }

  /** Concurrent callers share one request. */
  #ask(server: McpServerSetting): Promise<void> {
    const asked = this.#question(server)
    const asking = this.#asking.get(asked) ?? this.#keep(server, asked).finally(() => this.#asking.delete(asked))
    this.#asking.set(asked, asking)
    return asking
  }

  async #keep(server: McpServerSetting, asked: string): Promise<void> {
    const catalogue = await this.#discover(server)
    const until = this.#parts.now() + (catalogue.ok ? FRESH_MS : AWAY_MS)
    this.#known.set(server.name, { catalogue, until, asked })
    this.revision += 1
  }

  async #discover(server: McpServerSetting): Promise<McpCatalogue> {
    const { env, scope, fetch, settings } = this.#parts
    const { allowed_hosts } = settings()
    const look = (signal: AbortSignal) =>
      withMcpServer(server, { env, scope, fetch, allowed_hosts, signal }, async (listed, hide) => catalogued(listed, hide))
    try {
      const timeout_ms = Math.min(server.timeout_ms ?? TIMEOUT_MS, TIMEOUT_MS)
      return await withDeadline(look, { timeout_ms, what: 'listing its tools' })
    } catch (error) {
      return { ok: false, reason: messageOf(error) }
    }
  }
}

function catalogued({ tools, refused }: { tools: ToolSet; refused: readonly RefusedTool[] }, hide: Hide): McpCatalogue {
  const shown = (text: string, most: number): string => String(hide(text)).slice(0, most)
  const all = Object.entries(tools)
  const taken = all.slice(0, MOST_TOOLS).map(([name, tool]): [string, McpTool] => {
    const description = shown(typeof tool.description === 'string' ? tool.description : name, 1000)
    return [name, { description, shown_input: asSchema(tool.inputSchema), destroys: destroys(tool) }]
  })
  const beyond = all.slice(MOST_TOOLS).map(([name]) => ({ name, reason: `its server lists more than ${MOST_TOOLS} tools` }))
  const told = [...refused, ...beyond].slice(0, MOST_TOOLS)
  return { ok: true, tools: new Map(taken), refused: new Map(told.map(({ name, reason }) => [shown(name, 128), shown(reason, 300)])) }
}
