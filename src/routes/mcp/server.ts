import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type CallToolRequest,
  type CallToolResult,
} from '@modelcontextprotocol/sdk/types.js'
import { fromZod } from '../../protocol/problem.ts'
import type { Settings } from '../../protocol/settings.ts'
import { proposeSkillInput, type Proposal } from '../../skills/asp.ts'
import type { Manifest } from '../../skills/manifest.ts'
import { skillId, WHY } from '../../skills/manifest/names.ts'
import { idOf, toolName } from './tool-name.ts'
import { toolOf } from './tool.ts'

/** Many clients read no further than the first page. */
export const TOOLS_PER_PAGE = 100
const DRY_RUN = 'reflex/dry_run'

type Ports = {
  /** The skills to show, by id. */
  skills: () => Promise<{ settings: Pick<Settings, 'goal_labels'>; manifests: Manifest[] }>
  propose: (proposal: Proposal, options: { dry_run: boolean }) => Promise<CallToolResult>
}

/** The skills of a scope as an MCP server, for one request. A call is a proposal: the gate decides. */
export function mcpServer(scope: string, { skills, propose }: Ports): Server {
  const server = new Server(
    { name: 'reflex', title: `Reflex: ${scope}`, version: '1' },
    { capabilities: { tools: {} }, instructions: instructionsFor(scope) },
  )

  server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
    const after = cursorOf(params?.cursor)
    const { settings, manifests } = await skills()
    const rest = manifests.filter(({ id }) => id > after)
    const page = rest.slice(0, TOOLS_PER_PAGE)
    const tools = await Promise.all(page.map((manifest) => toolOf(manifest, settings.goal_labels)))
    const last = page.at(-1)
    return rest.length > page.length && last ? { tools, nextCursor: last.id } : { tools }
  })

  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const dry_run = params._meta?.[DRY_RUN] ?? false
    if (typeof dry_run !== 'boolean') throw invalid(`_meta["${DRY_RUN}"] is true or false.`)
    return propose(await proposalOf(params, skills), { dry_run })
  })
  return server
}

const instructionsFor = (scope: string): string =>
  `The tools are skills of the Reflex scope ${scope}. A gate decides whether a call runs; say in ${WHY} why you make it. A refusal says in to_pass what would ` +
  'have to change. Where an approval is needed a person decides, and what is approved runs by itself, once: do not call again.'

function cursorOf(cursor: string | undefined): string {
  if (cursor === undefined) return ''
  const id = skillId.safeParse(cursor)
  if (!id.success) throw invalid('The cursor is none: take the nextCursor of the page before.')
  return id.data
}

async function proposalOf({ name, arguments: given = {} }: CallToolRequest['params'], skills: Ports['skills']): Promise<Proposal> {
  const { [WHY]: why, ...inputs } = given
  const skill_id = await skillNamed(name, skills)
  const parsed = proposeSkillInput.safeParse({ skill_id, inputs, ...(why === undefined ? {} : { why }) })
  if (parsed.success) return parsed.data
  const [error] = fromZod(parsed.error)
  throw invalid(`arguments: ${error?.path === 'why' ? WHY : error?.path} ${error?.message}`)
}

async function skillNamed(name: string, skills: Ports['skills']): Promise<string> {
  const written = idOf(name)
  if (typeof written === 'object') return written.id
  if (written === 'hashed') {
    for (const { id } of (await skills()).manifests) if ((await toolName(id)) === name) return id
  }
  throw invalid(`There is no tool ${name}: tools/list has those that there are.`)
}

const invalid = (message: string): McpError => new McpError(ErrorCode.InvalidParams, message)
