import { z } from 'zod'
import type { Decider } from './approval.ts'
import { matchesScope, scopePattern } from './scope-pattern.ts'

export const baseRoles = ['admin', 'operator', 'publisher', 'viewer'] as const
export type BaseRole = (typeof baseRoles)[number]

/** A role of the deployment's own, which a skill's policy may ask for, is any such name. */
export const roleName = z.string().regex(/^[A-Za-z0-9._:-]{1,64}$/, 'a role is 1 to 64 characters of A-Z a-z 0-9 . _ : and -')

/** It is also the source of the events that are sent with the key. */
export const keyName = z
  .string()
  .regex(/^\P{Cc}{1,128}$/u, 'a name is 1 to 128 characters, none of them a control character')
  // JSON Schema has no flags, and validators differ on `u`: the same for the API's description, without one.
  .meta({ pattern: String.raw`^[^\u0000-\u001f\u007f-\u009f]{1,128}$` })

/** Who makes a request: what its key allows. */
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

/** The base roles nest; any other role is held only by a key that names it, the admin's not excepted. */
export function hasRole({ roles }: Pick<Principal, 'roles'>, role: string): boolean {
  return roles.some((held) => held === role || below.get(held)?.includes(role) === true)
}

/** As whom a principal decides on approvals; null where it may not. */
export function deciderOf(principal: Principal): Decider | null {
  const { key_id, name } = principal
  return hasRole(principal, 'operator') ? { key_id, name, is_admin: hasRole(principal, 'admin') } : null
}

/** `scope` may be a pattern too: it is covered if all that it matches is. */
export function coversScope({ scopes }: Pick<Principal, 'scopes'>, scope: string): boolean {
  return scopes.some((pattern) => matchesScope(pattern, scope))
}
