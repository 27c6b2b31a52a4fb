import { asSchema, type Schema } from 'ai'
import type { Env } from '../../env.ts'
import { messageOf } from '../../base/error-text.ts'
import type { McpServerSetting } from '../../contract/outside-tools.ts'
import type { Settings } from '../../contract/settings.ts'
import { withDeadline } from '../../base/deadline.ts'
import { withMcpServer } from '../../tools/mcp-call.ts'

/** How long what a server said of its tools is good for, and how long one that was away is left alone. */
const FRESH_MS = 600_000
const AWAY_MS = 30_000
const TIMEOUT_MS = 5000
/** A server with more than this shows the first ones. */
const MOST_TOOLS = 100

export type McpTool = { description: string; shown_input: Schema }
/** What is known of a server: its tools, or why they are not. */
export type McpCatalogue = { ok: true; tools: ReadonlyMap<string, McpTool> } | { ok: false; reason: string }

type Parts = { env: Env; settings: () => Settings; fetch: typeof fetch; now: () => number }
type Known = { catalogue: McpCatalogue; until: number; asked: string }

/**
 * What the scope's MCP servers offer. They are asked when somebody may need it, once in a while, each for so long at most, and again a while after one was
 * away. Kept in memory alone: an object that starts anew asks anew.
 */
export class McpServers {
  readonly #parts: Parts
  readonly #known = new Map<string, Known>()
  readonly #asking = new Map<string, Promise<void>>()
  #revision = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Rises with whatever is newly known. */
  get revision(): number {
    return this.#revision
  }

  /** Null where the server was not asked yet, or its setting has changed since. */
  catalogue(server: McpServerSetting): McpCatalogue | null {
    const known = this.#known.get(server.name)
    return known?.asked === this.#question(server) ? known.catalogue : null
  }

  /** Each server's catalogue is as fresh as it is to be. Never rejects: a server that is away is known to be. */
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

  /** Whoever comes while a server is being asked waits for that answer. */
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
      return { ok: true, tools: new Map(await withDeadline(look, { timeout_ms, what: 'asking for its tools' })) }
    } catch (error) {
      return { ok: false, reason: messageOf(error) }
    }
  }
}
