import { z } from 'zod'
import { operations } from '../../../../contract/operation.ts'
import { DEFAULT_SCOPE, scopeName } from '../../../../core/event.ts'
import { resource, serve } from '../../../../http/describe/operation.ts'
import { rpc } from './message.ts'
import { skillServer } from './server.ts'
import { answerOnce } from './transport.ts'

const mcp = operations({ tag: 'Skills', roles: ['viewer', 'publisher'], scoped: 'query' })(
  'post /v1/mcp',
  'callMcp',
  'Mount the skills of a scope as an MCP server',
  {
    description:
      'Streamable HTTP transport of the Model Context Protocol, without sessions: one JSON-RPC message per request, with a JSON response, or with a stream of progress and the response if `_meta.progressToken` asks for it; GET and DELETE are not supported. ' +
      'The tools are the active skills that fit the scope. `tools/call` makes a proposal with the roles of the key (publisher), and the gate decides; the argument `reflex_why` ' +
      'gives the reason. With `_meta: {"reflex/dry_run": true}` only the gate is evaluated. The trace of a call is that of `_meta.traceparent`, or of the header `traceparent`.',
    query: z.object({ scope: scopeName.default(DEFAULT_SCOPE) }),
    ...rpc,
  },
)

export const mcpRoutes = resource().openapiRoutes([
  serve(mcp, (c, { body }) => answerOnce((trying, era) => skillServer(c, trying, era), c.req.raw, body)),
])
