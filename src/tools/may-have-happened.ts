import { NO_ANSWER } from '../base/faults.ts'

/** Node's codes for connections that were never made. A Worker's `fetch` has none. */
const NOT_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])

/** True if a server with this status may have executed the request. 307 and 308 have not. */
export const answerLeavesOpen = (status: number): boolean => (status < 400 ? status !== 307 && status !== 308 : NO_ANSWER.has(status))

/** True if a request that failed with this error may have reached the server. */
export function mayHaveBeenSent(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined
  return !(typeof cause === 'object' && cause !== null && 'code' in cause && NOT_CONNECTED.has(String(cause.code)))
}

/** A `fetch` that knows if a change may have happened. */
export function followed(send: typeof fetch): { fetch: typeof fetch; mayHaveHappened: () => boolean } {
  let open = false
  const following = async (target: string, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted()
    // A GET after a redirect only reads the result of the executed request.
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

/**
 * Thrown if a call was cut off, by its own timeout or a lost connection: the effect may have
 * happened.
 */
export class CutOff extends Error {
  override readonly name = 'CutOff'
}
