import { coversScope, hasRole, type Principal } from '../../contract/principal.ts'
import { agentOwner, scopeOfOwner } from '../../contract/reflex.ts'
import { forbidden } from '../problems/refusals.ts'

/** A reflex or a skill: it belongs to who made it. `owner` is a name, for people. */
export type Owned = { kind: 'reflex' | 'skill'; id: string; owner: string; owner_id: string; scopes: readonly string[] }

/** What agents own is shown under their scope's name, and no key may look like one. */
export function demandPerson({ name }: Principal): void {
  if (scopeOfOwner(name) === null) return
  const detail = `The key ${name} is named as an agent: what begins with ${agentOwner('')} owns nothing by a key.`
  throw forbidden(detail)
}

/**
 * Its owner and any admin, and who operates the scope whose agent made it. Each of them has to
 * cover what the thing may touch.
 */
export function demandControl(principal: Principal, { kind, id, owner, owner_id, scopes }: Owned): void {
  demandPerson(principal)
  const agentScope = scopeOfOwner(owner_id)
  const touched = agentScope === null ? scopes : [...scopes, agentScope]
  const beyond = touched.find((pattern) => !coversScope(principal, pattern))
  if (beyond !== undefined) throw forbidden(`The ${kind} ${id} may act in ${beyond}, which the key ${principal.name} does not cover.`)
  if (agentScope === null && owner_id !== principal.key_id && !hasRole(principal, 'admin')) {
    const whose = owner === principal.name ? `another key's that is named ${owner}, too` : `${owner}'s`
    throw forbidden(`The ${kind} ${id} is ${whose}: only its owner and admins change its state. ${ownWay[kind]}`)
  }
}

const ownWay: Record<Owned['kind'], string> = {
  reflex: 'Copy it to have one of your own.',
  skill: 'Register it under another id to have one of your own.',
}
