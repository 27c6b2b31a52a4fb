import { connectScope, type ConnectOptions, type Connection } from '../../../client/socket.ts'
import { TicketRefused } from '../../../client/ticket.ts'
import { request, part } from './request.ts'

/**
 * Follows a scope. Each connection opens with a ticket, so the key is in no address. It reconnects
 * by itself, without a
 * gap or a duplicate.
 */
export function followScope(scope: string, options: Omit<ConnectOptions, 'base_url' | 'scope' | 'key' | 'ticket'>): Connection {
  return connectScope({ ...options, base_url: location.origin, scope, ticket: () => ticketFor(scope) })
}

async function ticketFor(scope: string): Promise<string> {
  const answer = await request<{ ticket: string }>('POST', `/v1/scopes/${part(scope)}/tickets`)
  if (answer.ok) return answer.value.ticket
  const { status, detail } = answer.problem
  throw [400, 401, 403].includes(status) ? new TicketRefused(detail) : new Error(detail)
}
