import { asSchema, type Schema } from 'ai'
import type { Env } from '../../env.ts'
import { messageOf } from '../../base/error-text.ts'
import type { McpServerSetting } from '../../contract/settings/outside-tools.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import { withDeadline } from '../../base/deadline.ts'
import { withMcpServer } from '../../tools/mcp-call.ts'

/** Lifetime of a server's tool list, and the pause after a server was unavailable. */
const FRESH_MS = 600_000
const AWAY_MS = 30_000
const TIMEOUT_MS = 5000
/** Tools beyond this number are left out. */
const MOST_TOOLS = 100

export type McpTool = { description: string; shown_input: Schema }
/** A server's tools, or why they are unavailable. */
export type McpCatalogue = { ok: true; tools: ReadonlyMap<string, McpTool> } | { ok: false; reason: string }

type Parts = { env: Env; settings: () => Settings; fetch: typeof fetch; now: () => number }
type Known = { catalogue: McpCatalogue; until: number; asked: string }

/** The tools of the scope's MCP servers. Stale lists are queried with a time limit. */
export class McpServers {
  readonly #parts: Parts
  readonly #known = new Map<string, Known>()
  readonly #asking = new Map<string, Promise<void>>()
  #revision = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Increments with each new list. */
  get revision(): number {
    return this.#revision
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
    this.#revision += 1
  }

  async #discover(server: McpServerSetting): Promise<McpCatalogue> {
    const { env, fetch, settings } = this.#parts
    const { allowed_hosts } = settings()
    const look = (signal: AbortSignal) =>
      withMcpServer(server, { env, fetch, allowed_hosts, signal }, async (tools, hide) =>
        Object.entries(tools)
          .slice(0, MOST_TOOLS)
          .map(([name, tool]): [string, McpTool] => {
            const description = String(hide(typeof tool.description === 'string' ? tool.description : name))
            return [name, { description: description.slice(0, 1000), shown_input: asSchema(tool.inputSchema) }]
          }),
      )
    try {
      const timeout_ms = Math.min(server.timeout_ms ?? TIMEOUT_MS, TIMEOUT_MS)
      return { ok: true, tools: new Map(await withDeadline(look, { timeout_ms, what: 'listing its tools' })) }
    } catch (error) {
      return { ok: false, reason: messageOf(error) }
    }
  }
}
