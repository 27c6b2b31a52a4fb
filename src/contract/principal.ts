import { z } from 'zod'
import type { Event } from '../core/event.ts'

export const scopePattern = z
  .string()
  .regex(/^[A-Za-z0-9._:@/*-]{1,128}$/, 'a scope pattern is 1 to 128 characters of A-Z a-z 0-9 . _ : @ - / and *')
  .refine(isSimple, 'a scope pattern of more than 50 characters may have * only at its end')

/** D1's GLOB is limited to 50 bytes; a longer pattern has `*` only at its end and needs no GLOB. */
function isSimple(pattern: string): boolean {
  return pattern.length <= 50 || !pattern.slice(0, -1).includes('*')
}

/** SQL that is true if the pattern in `value` matches `subject`, within D1's limit on GLOB. */
export const patternMatchesSql = (subject: string): string => `CASE
    WHEN length(value) <= 50 THEN ${subject} GLOB value
    WHEN substr(value, -1) = '*' THEN substr(${subject}, 1, length(value) - 1) = substr(value, 1, length(value) - 1)
    ELSE ${subject} = value END`

/**
 * True if the pattern matches the scope; `*` matches any characters. Another pattern matches as
 * text only if it is no wider.
 */
export function matchesScope(pattern: string, scope: string): boolean {
  const [first = '', ...pieces] = pattern.split('*')
  const last = pieces.pop()
  if (last === undefined) return pattern === scope
  const end = scope.length - last.length
  if (end < first.length || !scope.startsWith(first) || !scope.endsWith(last)) return false
  let from = first.length
  for (const piece of pieces) {
    const at = scope.indexOf(piece, from)
    if (at === -1 || at + piece.length > end) return false
    from = at + piece.length
  }
  return true
}

/** The common prefix of all scopes that a pattern matches. */
export const prefixOf = (pattern: string): string => pattern.split('*', 1)[0] ?? ''

const suffixOf = (pattern: string): string => pattern.slice(pattern.lastIndexOf('*') + 1)

/** True if some scope matches both patterns. */
export function overlaps(left: string, right: string): boolean {
  if (!left.includes('*')) return matchesScope(right, left)
  if (!right.includes('*')) return matchesScope(left, right)
  const [begin, other_begin] = [prefixOf(left), prefixOf(right)]
  const [end, other_end] = [suffixOf(left), suffixOf(right)]
  // Between what both begin and end with, the stars of each take what the other demands.
  return (begin.startsWith(other_begin) || other_begin.startsWith(begin)) && (end.endsWith(other_end) || other_end.endsWith(end))
}

/** The person who decides, by the key. */
export type DecidedBy = { key_id: string; name: string; is_admin: boolean }

/** The id under which the deployment's admin key acts; it has no row in D1. */
export const ADMIN_KEY_ID = 'admin'

/** True for what an id of a key may be. A name may be it, too. */
export const isKeyId = (text: string): boolean => text === ADMIN_KEY_ID || /^[0-9a-f]{16}$/.test(text)

/** The role of the key that sent an event, as far as a setting may trust it. */
export type SenderRole = NonNullable<Event['meta']['role']>
/** The roles that `trusted_senders` may name: the strongest first. */
const senderRoles = ['admin', 'operator'] as const satisfies readonly SenderRole[]
/** The text before the name of a role in a setting of senders. */
export const ROLE = 'role:'
const ROLES = senderRoles.map((role) => ROLE + role)
/** The name of a sender, or `role:NAME`. */
export const trustedSender = z
  .string()
  .min(1)
  .max(256)
  .refine((text) => !text.startsWith(ROLE) || ROLES.includes(text), `a role is one of ${ROLES.join(', ')}`)

export const baseRoles = ['admin', 'operator', 'publisher', 'viewer'] as const
export type BaseRole = (typeof baseRoles)[number]

/** Custom roles, which policies of skills may require, also have this form. */
export const roleName = z.string().regex(/^[A-Za-z0-9._:-]{1,64}$/, 'a role is 1 to 64 characters of A-Z a-z 0-9 . _ : and -')

export const keyName = z
  .string()
  .regex(/^\P{Cc}{1,128}$/u, 'a name is 1 to 128 characters, none of them a control character')
  // JSON Schema has no flags, and validators differ on `u`.
  .meta({ pattern: String.raw`^[^\u0000-\u001f\u007f-\u009f]{1,128}$` })

export const newKey = z.strictObject({
  name: keyName.meta({ description: 'Also the `source` of the events that are sent with it.' }),
  roles: z
    .array(roleName)
    .min(1)
    .max(32)
    .describe('admin ⊃ operator ⊃ publisher and viewer. Further names are for policies of skills, in addition to one of these.'),
  scopes: z.array(scopePattern).min(1).max(100).describe('Patterns: `*` matches any characters.'),
  teaches: z
    .boolean()
    .optional()
    .describe(
      'Whether the scopes that it covers may learn from its events alone, as from a sender in `learning.trusted_sources`. For a person or a system of yours, which decides on the content of its events itself.',
    ),
  expires_at: z.iso.datetime({ offset: true }).optional().describe('The key is refused from then on. Unset: it does not expire.'),
})
export const key = z
  .object({
    ...newKey.shape,
    id: z.string(),
    created_at: z.iso.datetime(),
    used_at: z.iso.datetime().nullable().describe('The last use, known to an hour; null if there was none since the key exists.'),
  })
  .meta({ id: 'Key' })

export const ownKey = z
  .object({
    key_id: z.string(),
    name: z.string(),
    roles: z.array(z.string()),
    scopes: z.array(z.string()),
    base_roles: z.array(z.enum(baseRoles)).describe('The base roles that it has, nested ones included.'),
  })
  .meta({ id: 'OwnKey' })

export const principal = z.object({
  key_id: z.string().min(1),
  name: keyName,
  roles: z.array(roleName),
  scopes: z.array(scopePattern),
})
export type Principal = z.infer<typeof principal>

const below: ReadonlyMap<string, readonly string[]> = new Map<BaseRole, readonly BaseRole[]>([
  ['admin', ['operator', 'publisher', 'viewer']],
  ['operator', ['publisher', 'viewer']],
])

/** Base roles nest. A key, even the admin's, must name any other role. */
export function hasRole({ roles }: Pick<Principal, 'roles'>, role: string): boolean {
  return roles.some((held) => held === role || below.get(held)?.includes(role) === true)
}

/** The role by which a setting may trust what a key sends. The key of the deployment needs none. */
export function senderRole(principal: Pick<Principal, 'key_id' | 'roles'>): SenderRole | undefined {
  if (principal.key_id === ADMIN_KEY_ID) return undefined
  return senderRoles.find((role) => hasRole(principal, role))
}

/** The principal as a decider on approvals; null if it may not decide. */
export function deciderOf(principal: Principal): DecidedBy | null {
  const { key_id, name } = principal
  return hasRole(principal, 'operator') ? { key_id, name, is_admin: hasRole(principal, 'admin') } : null
}

/** `scope` may be a pattern: it is covered if everything it matches is. */
export function coversScope({ scopes }: { scopes: readonly string[] }, scope: string): boolean {
  return scopes.some((pattern) => matchesScope(pattern, scope))
}

/** Keys belong to no scope, so that only these admins act for other keys. */
export const isAdminOfAll = (principal: Principal): boolean => hasRole(principal, 'admin') && coversScope(principal, '*')

const ROUGH_BYTES = 100_000_000
const ROUGH_COUNT = 1000

/**
 * A number of the whole deployment, as a key of these scopes sees it: roughly, unless it covers
 * all. Otherwise each event of other tenants would show in it.
 */
const seenBy = (patterns: readonly string[], exact: number, step: number): number =>
  patterns.includes('*') ? exact : Math.floor(exact / step) * step

export const sizeSeenBy = (patterns: readonly string[], bytes: number): number => seenBy(patterns, bytes, ROUGH_BYTES)
export const countSeenBy = (patterns: readonly string[], count: number): number => seenBy(patterns, count, ROUGH_COUNT)
