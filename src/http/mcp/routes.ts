import { z } from '@hono/zod-openapi'
import { demandRole } from '../auth/middleware.ts'
import { DEFAULT_SCOPE, scopeName } from '../../core/event.ts'
import type { ProposalResult } from '../../skills/session/result.ts'
import { guard, json, jsonRequest, problems, resource, routes } from '../describe/describe.ts'
import { propose } from '../skills/propose.ts'
import { answerOnce, type Trying } from './answer-once.ts'
import { callResult } from './call-result.ts'
import { mcpServer, type SkillsPage } from './server.ts'

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
    'gives the reason. With `_meta: {"reflex/dry_run": true}` only the gate is evaluated.',
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
      propose: (proposal, { dry_run }) =>
        trying(async () => {
          demandRole(principal, 'publisher')
          const answer = JSON.parse(await propose(c, proposal, { from: 'model', dry_run })) as ProposalResult
          return callResult(answer, new URL(c.req.url).origin)
        }),
    })
  return answerOnce(serverFor, c.req.raw, c.req.valid('json'))
})
