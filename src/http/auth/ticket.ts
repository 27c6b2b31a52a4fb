import { z } from 'zod'
import { limits } from '../../base/limits.ts'
import { fromBase64Url, toBase64Url } from './base64url.ts'
import { baseRoles, keyName, roleName, type Principal } from '../../contract/principal.ts'

/** A ticket travels in a URL. We issue none longer than this, so a longer one is not verified. */
const LONGEST = 2000
const FORM = /^rft_([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/

/** The signed part of a ticket, as JSON. */
const ticketClaims = z.strictObject({
  scope: z.string().describe('The one scope that the ticket opens.'),
  key_id: z.string().min(1).describe('The id of the key that asked for it.'),
  name: keyName.describe('The name of that key: the source of what is sent.'),
  roles: z.array(roleName).describe('The base roles of that key.'),
  nonce: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .describe('Names the ticket: the scope takes each nonce once.'),
  expires_at: z.int().describe('In milliseconds.'),
})
type TicketClaims = z.infer<typeof ticketClaims>

/** Null if the deployment has no secret to sign with. */
type TicketSecret = string | null

/** `REFLEX_TICKET_SECRET` if it is set, else the admin key. */
export function ticketSecretOf(env: { REFLEX_TICKET_SECRET?: string; REFLEX_ADMIN_KEY?: string }): TicketSecret {
  return env.REFLEX_TICKET_SECRET?.trim() || env.REFLEX_ADMIN_KEY?.trim() || null
}

type Issue = { scope: string; principal: Principal; nonce: string; now: number }

/** Only the base roles matter to a connection, and a URL has little room. */
export async function issueTicket(
  secret: string,
  { scope, principal, nonce, now }: Issue,
): Promise<{ ticket: string; expires_at: number }> {
  const { key_id, name } = principal
  const expires_at = now + limits.ticket_ms
  const roles = baseRoles.filter((role) => principal.roles.includes(role))
  const claims: TicketClaims = { scope, key_id, name, roles, nonce, expires_at }
  const payload = toBase64Url(new TextEncoder().encode(JSON.stringify(claims)))
  const signature = await crypto.subtle.sign('HMAC', await signingKey(secret), new TextEncoder().encode(payload))
  return { ticket: `rft_${payload}.${toBase64Url(new Uint8Array(signature))}`, expires_at }
}

/** Null unless this deployment signed the ticket for this scope, less than a minute ago. */
export async function verifyTicket(secret: TicketSecret, scope: string, ticket: string, now: number): Promise<TicketClaims | null> {
  const [, payload, signature] = ticket.length <= LONGEST ? (FORM.exec(ticket) ?? []) : []
  if (secret === null || payload === undefined || signature === undefined) return null
  const signed = await crypto.subtle.verify('HMAC', await signingKey(secret), fromBase64Url(signature), new TextEncoder().encode(payload))
  if (!signed) return null
  // Another version of this Worker may have signed it, with other claims.
  const claims = ticketClaims.safeParse(JSON.parse(new TextDecoder().decode(fromBase64Url(payload))))
  return claims.success && claims.data.scope === scope && claims.data.expires_at > now ? claims.data : null
}

/** A ticket's principal reaches its scope and nothing else. */
export const principalOf = ({ scope, key_id, name, roles }: TicketClaims): Principal => ({ key_id, name, roles, scopes: [scope] })

let derived: { secret: string; key: CryptoKey } | undefined

/** Derived, so that signatures reveal nothing about the secret. Cached per isolate. */
async function signingKey(secret: string): Promise<CryptoKey> {
  if (derived?.secret === secret) return derived.key
  const material = await crypto.subtle.importKey('raw', new TextEncoder().encode(secret), 'HKDF', false, ['deriveKey'])
  const parameters = { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(), info: new TextEncoder().encode('reflex ticket 1') }
  const hmac = { name: 'HMAC', hash: 'SHA-256', length: 256 }
  const key = await crypto.subtle.deriveKey(parameters, material, hmac, false, ['sign', 'verify'])
  derived = { secret, key }
  return key
}
