import type { ArtifactKind, Owner } from '../../contract/artifact.ts'
import { agentOwner, scopeOfOwner } from '../../contract/reflex.ts'
import { coversScope, hasRole, type Principal } from '../../contract/principal.ts'
import { forbidden } from '../problems/refusals.ts'

/** Agents own artifacts under their scope's name, so a key with such a name owns nothing. */
export function demandPerson({ name }: Principal): void {
  if (scopeOfOwner(name) === null) return
  throw forbidden(`The key ${name} has the name of an agent: keys whose name begins with ${agentOwner('')} own nothing.`)
}

/** Admits the owner, admins and an agent's operators, if they cover all scopes it reaches. */
export function demandControl(
  principal: Principal,
  { kind, id, owner, owner_id, scopes }: Owner & { kind: ArtifactKind; id: string },
): void {
  demandReach(principal, { kind, id, owner_id, scopes })
  if (scopeOfOwner(owner_id) !== null || owner_id === principal.key_id || hasRole(principal, 'admin')) return
  const whose = owner === principal.name ? `another key that is also named ${owner}` : owner
  throw forbidden(`The ${kind} ${id} belongs to ${whose}: only its owner and admins change its state. ${ownWay[kind]}`)
}

/** Admits people whose key covers all scopes that the artifact reaches. */
export function demandReach(
  principal: Principal,
  { kind, id, owner_id, scopes }: Pick<Owner, 'owner_id' | 'scopes'> & { kind: ArtifactKind; id: string },
): void {
  demandPerson(principal)
  const agentScope = scopeOfOwner(owner_id)
  const touched = agentScope === null ? scopes : [...scopes, agentScope]
  const beyond = touched.find((pattern) => !coversScope(principal, pattern))
  if (beyond !== undefined) throw forbidden(`The ${kind} ${id} may act in ${beyond}, which the key ${principal.name} does not cover.`)
}

const ownWay: Record<ArtifactKind, string> = {
  reflex: 'Copy it to get one of your own.',
  skill: 'Register it under another id to get one of your own.',
}
