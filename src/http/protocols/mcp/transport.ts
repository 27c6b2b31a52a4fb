import {
  createMcpHandler,
  isLegacyRequest,
  type McpRequestContext,
  type McpServer,
  ProtocolError,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'

/** Runs a part of the work and records its error. */
export type Trying = <Answer>(work: () => Promise<Answer>) => Promise<Answer>
export type Era = McpRequestContext['era']
/** Makes the server of one message. */
export type ServerFor = (trying: Trying, era: Era) => McpServer

/**
 * Answers one message with its own server, in the version of the protocol that it was sent in.
 * Errors within `trying` are handled as on any other route: the SDK would respond 200 and expose
 * them.
 */
export async function answerOnce(serverFor: ServerFor, request: Request, parsedBody: unknown): Promise<Response> {
  const failures: unknown[] = []
  const trying: Trying = async (work) => {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof ProtocolError)) failures.push(error)
      throw error
    }
  }
  const response = (await isLegacyRequest(request, parsedBody))
    ? await answerLegacy(serverFor(trying, 'legacy'), request, parsedBody)
    : await createMcpHandler(({ era }) => serverFor(trying, era), { legacy: 'reject', maxSubscriptions: 0 }).fetch(request, { parsedBody })
  if (failures.length > 0) throw failures[0]
  return response
}

/** The SDK's own fallback would answer as a stream of events. */
async function answerLegacy(server: McpServer, request: Request, parsedBody: unknown): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  await server.connect(transport)
  return transport.handleRequest(request, { parsedBody })
}
