import { z } from '@hono/zod-openapi'
import { demandRole } from '../auth/middleware.ts'
import { DEFAULT_SCOPE, scopeName } from '../../core/event.ts'
import type { ProposalResult, ProposalStatus } from '../../skills/session/result.ts'
import { guard, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { propose } from '../skills/propose.ts'
import { mcpServer, type SkillsPage } from './server.ts'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { McpError, type CallToolResult } from '@modelcontextprotocol/sdk/types.js'

const route = routes('Skills')

/** The SDK validates the rest. It also accepts batches, which MCP dropped on 2025-06-18. */
const message = z.looseObject(
  { jsonrpc: z.literal('2.0'), id: z.union([z.string(), z.int()]).optional(), method: z.string().optional() },
  'it is one JSON-RPC message, not a batch',
)

const mcp = route('post /v1/mcp', 'callMcp', 'Mount the skills of a scope as an MCP server', {
  description:
    'Streamable HTTP transport of the Model Context Protocol, without sessions: one JSON-RPC message per request, with a JSON response; GET and DELETE are not supported. ' +
    'The tools are the active skills that fit the scope. `tools/call` makes a proposal with the roles of the key (publisher), and the gate decides; the argument `reflex_why` ' +
    'gives the reason. With `_meta: {"reflex/dry_run": true}` only the gate is evaluated. The trace of a call is that of `_meta.traceparent`, or of the header `traceparent`.',
  ...guard({ roles: ['viewer', 'publisher'], scoped: 'query', body: 'json' }),
  request: {
    query: z.object({ scope: scopeName.default(DEFAULT_SCOPE) }),
    body: jsonRequest(message, { jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  },
  responses: {
    200: json(message, 'The response to a request.'),
    202: { description: 'The notification was accepted.' },
    406: { description: 'Accept must name application/json and text/event-stream.' },
    ...problems(400, 413, 415),
  },
})

export const mcpRoutes = resource().openapi(mcp, async (c) => {
  const { scope, principal } = c.var
  const stub = c.env.SCOPE.getByName(scope)
  const serverFor = (trying: Trying) =>
    mcpServer(scope, {
      skills: (page) => trying(async () => JSON.parse(await stub.skills(page)) as SkillsPage),
      ids: () => trying(async () => stub.skillIds()),
      propose: (proposal, given) =>
        trying(async () => {
          demandRole(principal, 'publisher')
          const answer = JSON.parse(await propose(c, proposal, { from: 'model', ...given })) as ProposalResult
          return callResult(answer, new URL(c.req.url).origin)
        }),
    })
  return answerOnce(serverFor, c.req.raw, c.req.valid('json'))
})

/** Runs a part of the work and records its error. */
type Trying = <Result>(work: () => Promise<Result>) => Promise<Result>

/**
 * Answers one message with its own server. Errors within `trying` are handled as on any other
 * route: the SDK would respond 200 and expose them.
 */
async function answerOnce(serverFor: (trying: Trying) => Server, request: Request, parsedBody: unknown): Promise<Response> {
  const failures: unknown[] = []
  const trying: Trying = async (work) => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof McpError)) failures.push(error)
      throw error
    }
  }
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await serverFor(trying).connect(transport)
  const response = await transport.handleRequest(request, { parsedBody })
  if (failures.length > 0) throw failures[0]
  return response
}

/** The result of a call: a summary, the changes needed to pass, and the full proposal result. */
function callResult(answer: ProposalResult, origin: string): CallToolResult {
  const { skill_id, version, status, dry_run } = answer
  const dry = dry_run ? { dry_run, note: NOTHING_RAN } : {}
  const text = JSON.stringify({ skill_id, version, status, ...dry, ...told[status](answer, origin) })
  return { content: [{ type: 'text', text }], structuredContent: answer, isError: status !== 'ok' }
}

const NOTHING_RAN = 'Nothing ran: this is only the decision of the gate. Call again without reflex/dry_run to run it.'

type Told = (answer: ProposalResult, origin: string) => object

const badRun: Told = ({ reason, steps, compensation }) => ({ reason, steps, compensation })

const told: Record<ProposalStatus, Told> = {
  ok: ({ outputs, idempotent, dry_run }) => (dry_run ? {} : { outputs, ...(idempotent ? { idempotent } : {}) }),
  clarify: ({ questions, decision: { to_pass } }) => ({ questions, to_pass }),
  refused: ({ reason, decision: { to_pass } }) => ({ reason, to_pass }),
  needs_approval: ({ reason, approval_id }, origin) => ({
    reason,
    ...(approval_id === null ? {} : { approval: approvalOf(approval_id, origin) }),
  }),
  failed: badRun,
  partial_failure: badRun,
  unknown: badRun,
}

const approvalOf = (id: string, origin: string): object => ({
  id,
  approve: `POST ${origin}/v1/approvals/${id}/approve`,
  reject: `POST ${origin}/v1/approvals/${id}/reject`,
  role: 'operator',
  note: 'A person decides. An approved call runs once by itself: do not call again.',
})
