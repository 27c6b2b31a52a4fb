import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Principal } from '../../../../src/contract/principal.ts'
import { issueTicket, principalOf, ticketSecretOf, verifyTicket } from '../../../../src/http/auth/ticket.ts'
import { limits } from '../../../../src/base/limits.ts'
import { assertProperty } from '../../../support/property.ts'

const scope = 'team-a/x'
const principal: Principal = { key_id: '00112233aabbccdd', name: 'Zoë ✓', roles: ['viewer', 'night-shift'], scopes: ['team-a/*', 'b'] }
const now = 1_800_000_000_000
const issue = (own: Partial<Parameters<typeof issueTicket>[1]> = {}, secret = 'secret') =>
  issueTicket(secret, { scope, principal, nonce: 'ab'.repeat(16), now, ...own })

describe('a ticket', () => {
  test('is accepted by who signed it, with its key, its base roles and its one scope', async () => {
    const { ticket, expires_at } = await issue()
    const claims = await verifyTicket('secret', scope, ticket, now + 1)
    expect(claims).toMatchObject({ nonce: 'ab'.repeat(16), expires_at })
    expect(claims && principalOf(claims)).toEqual({ ...principal, roles: ['viewer'], scopes: [scope] })
  })

  test('is refused in another scope, when it has expired, and under another secret', async () => {
    const { ticket } = await issue()
    expect(await verifyTicket('secret', 'team-a/y', ticket, now)).toBeNull()
    expect(await verifyTicket('secret', scope, ticket, now + limits.ticket_ms)).toBeNull()
    expect(await verifyTicket('other', scope, ticket, now)).toBeNull()
    expect(await verifyTicket(null, scope, ticket, now)).toBeNull()
  })

  test('is refused where there is no secret, also if it was signed with the word for that', async () => {
    const { ticket } = await issue({}, 'null')
    expect(await verifyTicket('null', scope, ticket, now)).not.toBeNull()
    expect(await verifyTicket(null, scope, ticket, now)).toBeNull()
  })

  test('is refused if it is longer than any that is issued', async () => {
    const long = 's'.repeat(3000)
    const { ticket } = await issue({ scope: long })
    expect(await verifyTicket('secret', long, ticket, now)).toBeNull()
  })

  test('is refused with any character changed, added or left out', async () => {
    const { ticket } = await issue()
    const place = fc.integer({ min: 0, max: ticket.length - 1 })
    // The last character of a signature holds two bits that are none of it.
    const changed = (at: number) => ticket.slice(0, at) + (ticket[at] === 'A' ? 'B' : 'A') + ticket.slice(at + 1)
    await assertProperty(
      'http/auth/ticket',
      fc.asyncProperty(place, fc.constantFrom('change', 'add', 'drop'), async (at, how) => {
        fc.pre(!(how === 'change' && at === ticket.length - 1))
        const forged =
          how === 'change'
            ? changed(at)
            : how === 'add'
              ? `${ticket.slice(0, at)}A${ticket.slice(at)}`
              : ticket.slice(0, at) + ticket.slice(at + 1)
        fc.pre(forged !== ticket)
        expect(await verifyTicket('secret', scope, forged, now)).toBeNull()
      }),
    )
  })

  test('fits a URL for the longest scope and name', async () => {
    const longest = { scope: 's'.repeat(128), principal: { ...principal, name: '\u{1F600}'.repeat(128) } }
    const { ticket } = await issue(longest)
    expect(ticket.length).toBeLessThan(2000)
    expect(await verifyTicket('secret', longest.scope, ticket, now)).toMatchObject({ name: longest.principal.name })
  })
})

test.each([
  [{ REFLEX_TICKET_SECRET: 'own', REFLEX_ADMIN_KEY: 'admin' }, 'own'],
  [{ REFLEX_TICKET_SECRET: ' ', REFLEX_ADMIN_KEY: ' admin ' }, 'admin'],
  [{ REFLEX_ADMIN_KEY: '' }, null],
  [{}, null],
])('of %j the secret for tickets is %j', (env, secret) => {
  expect(ticketSecretOf(env)).toBe(secret)
})
