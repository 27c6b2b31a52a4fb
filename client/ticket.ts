import { scopeAddress } from './address.ts'

/** The key is wrong or lacks permission: a retry cannot succeed. */
export class TicketRefused extends Error {
  override readonly name = 'TicketRefused'
}

const PATIENCE_MS = 10_000

/** A browser cannot set headers on a WebSocket, so each connection opens with a ticket. */
export async function askTicket(base_url: string, scope: string, key: string): Promise<string> {
  const response = await fetch(scopeAddress(base_url, scope, 'tickets'), {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}` },
    // A hanging server must not end the attempts.
    signal: AbortSignal.timeout(PATIENCE_MS),
  })
  const answer: { ticket?: string; detail?: string } = JSON.parse(await response.text())
  if (answer.ticket !== undefined) return answer.ticket
  const message = `no ticket for ${scope}: ${answer.detail ?? `HTTP ${response.status}`}`
  throw [400, 401, 403].includes(response.status) ? new TicketRefused(message) : new Error(message)
}
