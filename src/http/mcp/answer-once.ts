import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { McpError } from '@modelcontextprotocol/sdk/types.js'

/** Runs a part of the work and records what it throws. */
export type Trying = <Result>(work: () => Promise<Result>) => Promise<Result>

/**
 * Answers one message with its own server, since there are no sessions. Errors within `trying`,
 * except protocol errors, are rethrown and handled as on any other route: the SDK would respond 200
 * and expose the message.
 */
export async function answerOnce(serverFor: (trying: Trying) => Server, request: Request, parsedBody: unknown): Promise<Response> {
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
