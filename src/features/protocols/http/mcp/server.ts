import { McpServer, ProtocolError, ProtocolErrorCode, type CallToolRequest, type CallToolResult } from '@modelcontextprotocol/server'
import { fromZod } from '../../../../contract/problem.ts'
import { proposeSkillInput, type Proposal } from '../../../../skills/asp/parse.ts'
import { skillId } from '../../../../contract/skill-names.ts'
import { WHY } from '../../../../skills/manifest/names.ts'
import { abilitiesOf, TASKS } from './abilities.ts'
import type { Caller } from '../../../../http/auth/middleware.ts'
import { callSkill } from './calls.ts'
import { tellOf } from './progress.ts'
import { serveTasks } from './tasks.ts'
import { idOf, toolName } from './tool-name.ts'
import { type SkillsPage, toolOf } from './tool.ts'
import type { Era, Trying } from './transport.ts'

/** Many clients read only the first page. */
export const TOOLS_PER_PAGE = 100
const DRY_RUN = 'reflex/dry_run'
/** The time for which a client may keep the list of tools and the server's description. */
const LIST_MS = 5000
const ABOUT_MS = 300_000

/** The skills of a scope as an MCP server for one request. A call is a proposal to the gate. */
export function skillServer(c: Caller, trying: Trying, era: Era): McpServer {
  const { scope } = c.var
  const stub = c.env.SCOPE.getByName(scope)
  const mcp = new McpServer(
    { name: 'reflex', title: `Reflex: ${scope}`, version: '1' },
    {
      instructions: instructionsFor(scope),
      cacheHints: {
        'tools/list': { ttlMs: LIST_MS, cacheScope: 'private' },
        'server/discover': { ttlMs: ABOUT_MS, cacheScope: 'private' },
      },
    },
  )
  // Given to the constructor, it would promise notifications of changed lists.
  mcp.server.registerCapabilities({ tools: {}, ...(era === 'modern' && { extensions: { [TASKS]: {} } }) })

  mcp.server.setRequestHandler('tools/list', async ({ params }) => {
    const after = cursorOf(params?.cursor)
    const text = await trying(() => stub.skills({ after, limit: TOOLS_PER_PAGE }))
    const { goal_labels, tau, skills: page, more } = JSON.parse(text) as SkillsPage
    const tools = await Promise.all(page.map(({ manifest, needed, acts }) => toolOf(manifest, { goal_labels, tau, needed, acts })))
    const last = page.at(-1)
    return more && last ? { tools, nextCursor: last.manifest.id } : { tools }
  })

  mcp.server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const { [DRY_RUN]: dry_run = false, traceparent } = mcpReq._meta ?? {}
    if (typeof dry_run !== 'boolean') throw invalid(`_meta["${DRY_RUN}"] is true or false.`)
    if ('task' in params) throw invalid('Tasks of the version 2025-11-25 are not supported.')
    const proposal = await proposalOf(params, () => trying(() => stub.skillIds()))
    const asked = {
      ...abilitiesOf(mcpReq),
      responses: mcpReq.inputResponses,
      state: mcpReq.requestState<string>(),
      tell: tellOf(mcpReq),
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
    }
    // The result of a task is another kind of result than the SDK's types know.
    return (await trying(() => callSkill(c, { proposal, dry_run, ...asked }))) as CallToolResult
  })
  if (era === 'modern') serveTasks(mcp, c, trying)
  return mcp
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

async function proposalOf({ name, arguments: given = {} }: CallToolRequest['params'], ids: () => Promise<string[]>): Promise<Proposal> {
  const { [WHY]: why, ...inputs } = given
  const skill_id = await skillNamed(name, ids)
  const parsed = proposeSkillInput.safeParse({ skill_id, inputs, ...(why === undefined ? {} : { why }) })
  if (parsed.success) return parsed.data
  const [error] = fromZod(parsed.error)
  throw invalid(`arguments: ${error?.path === 'why' ? WHY : error?.path} ${error?.message}`)
}

async function skillNamed(name: string, ids: () => Promise<string[]>): Promise<string> {
  const written = idOf(name)
  if (typeof written === 'object') return written.id
  if (written === 'hashed') {
    for (const id of await ids()) if ((await toolName(id)) === name) return id
  }
  throw invalid(`Unknown tool ${name}: use tools/list for the available ones.`)
}

const invalid = (message: string): ProtocolError => new ProtocolError(ProtocolErrorCode.InvalidParams, message)
