import { NO_ANSWER } from '../base/faults.ts'

/** What Node says where no connection came about. A Worker's `fetch` does not tell it from a connection that broke. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])

/** Whether a server that answers so may have done what it was asked to. One that says where else to ask for the same (307, 308) has not. */
export const answerLeavesOpen = (status: number): boolean => (status < 400 ? status !== 307 && status !== 308 : NO_ANSWER.has(status))

/** Whether a request that ended by this error may have reached the other side. */
export function mayHaveBeenSent(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined
  return !(typeof cause === 'object' && cause !== null && 'code' in cause && NOT_CONNECTED.has(String(cause.code)))
}

/** A `fetch` that knows whether what it was to change may have been: from when the request is sent until an answer says that it was not. */
export function followed(send: typeof fetch): { fetch: typeof fetch; mayHaveHappened: () => boolean } {
  let open = false
  const following = async (target: string, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted()
    // What a request that was carried out redirects to only shows what became of it.
    if (init.method === 'GET') return send(target, init)
    try {
      open = true
      const response = await send(target, init)
      open = answerLeavesOpen(response.status)
      return response
    } catch (error) {
      open = mayHaveBeenSent(error)
      throw error
    }
  }
  return { fetch: following as typeof fetch, mayHaveHappened: () => open }
}
