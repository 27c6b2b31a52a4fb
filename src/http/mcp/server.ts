import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type CallToolRequest,
  type CallToolResult,
} from '@modelcontextprotocol/sdk/types.js'
import { fromZod } from '../../contract/problem.ts'
import { proposeSkillInput, type Proposal } from '../../skills/asp/parse.ts'
import type { Manifest } from '../../skills/manifest/manifest.ts'
import { skillId, WHY } from '../../skills/manifest/names.ts'
import { idOf, toolName } from './tool-name.ts'
import { toolOf } from './tool.ts'

/** Many clients read only the first page. */
export const TOOLS_PER_PAGE = 100
const DRY_RUN = 'reflex/dry_run'

export type SkillsPage = { goal_labels: string[]; tau?: number; skills: { manifest: Manifest; needed: string[] }[]; more: boolean }

type Ports = {
  /** The skills after `after`, by id; fewer than `limit` if they are large. */
  skills: (page: { after: string; limit: number }) => Promise<SkillsPage>
  ids: () => Promise<string[]>
  propose: (proposal: Proposal, options: { dry_run: boolean; traceparent: string | undefined }) => Promise<CallToolResult>
}

/** The skills of a scope as an MCP server for one request. A call is a proposal to the gate. */
export function mcpServer(scope: string, { skills, ids, propose }: Ports): Server {
  const server = new Server(
    { name: 'reflex', title: `Reflex: ${scope}`, version: '1' },
    { capabilities: { tools: {} }, instructions: instructionsFor(scope) },
  )

  server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
    const after = cursorOf(params?.cursor)
    const { goal_labels, tau, skills: page, more } = await skills({ after, limit: TOOLS_PER_PAGE })
    const tools = await Promise.all(page.map(({ manifest, needed }) => toolOf(manifest, { goal_labels, tau, needed })))
    const last = page.at(-1)
    return more && last ? { tools, nextCursor: last.manifest.id } : { tools }
  })

  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const dry_run = params._meta?.[DRY_RUN] ?? false
    if (typeof dry_run !== 'boolean') throw invalid(`_meta["${DRY_RUN}"] is true or false.`)
    const traceparent = params._meta?.['traceparent']
    return propose(await proposalOf(params, ids), { dry_run, traceparent: typeof traceparent === 'string' ? traceparent : undefined })
  })
  return server
}

const instructionsFor = (scope: string): string =>
  `The tools are skills of the Reflex scope ${scope}. A gate decides whether a call runs; give the reason for it in ${WHY}. A refusal lists in to_pass what would ` +
  'have to change. If an approval is needed, a person decides, and an approved call runs once by itself: do not call again.'

function cursorOf(cursor: string | undefined): string {
  if (cursor === undefined) return ''
  const id = skillId.safeParse(cursor)
  if (!id.success) throw invalid("Invalid cursor: pass the previous page's nextCursor.")
  return id.data
}

async function proposalOf({ name, arguments: given = {} }: CallToolRequest['params'], ids: Ports['ids']): Promise<Proposal> {
  const { [WHY]: why, ...inputs } = given
  const skill_id = await skillNamed(name, ids)
  const parsed = proposeSkillInput.safeParse({ skill_id, inputs, ...(why === undefined ? {} : { why }) })
  if (parsed.success) return parsed.data
  const [error] = fromZod(parsed.error)
  throw invalid(`arguments: ${error?.path === 'why' ? WHY : error?.path} ${error?.message}`)
}

async function skillNamed(name: string, ids: Ports['ids']): Promise<string> {
  const written = idOf(name)
  if (typeof written === 'object') return written.id
  if (written === 'hashed') {
    for (const id of await ids()) if ((await toolName(id)) === name) return id
  }
  throw invalid(`Unknown tool ${name}: use tools/list for the available ones.`)
}

const invalid = (message: string): McpError => new McpError(ErrorCode.InvalidParams, message)
