import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import { McpError } from '@modelcontextprotocol/sdk/types.js'

/** Does part of the work of an answer, and keeps what it throws. */
export type Trying = <Result>(work: () => Promise<Result>) => Promise<Result>

/**
 * Answers one message by a server of its own: there are no sessions. What is thrown while `trying` and is no error of the protocol is thrown again, to be
 * answered as on every other route: the SDK would answer 200 and show the error's message.
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
