import { coversScope, hasRole, type Principal } from '../auth/principal.ts'
import { forbidden } from './refusals.ts'

const AGENT = 'scope:'

/** A reflex or a skill: it belongs to who made it. */
export type Owned = { kind: 'reflex' | 'skill'; id: string; owner: string; scopes: readonly string[] }

/** What agents own is owned under their scope's name, and no key may pass as one. */
export function demandPerson({ name }: Principal): void {
  if (name.startsWith(AGENT)) throw forbidden(`The key ${name} is named as an agent: what begins with ${AGENT} owns nothing by a key.`)
}

/** Its owner and any admin, and who operates the scope whose agent made it. A key's name alone is no proof: it must also cover what the thing may touch. */
export function demandControl(principal: Principal, { kind, id, owner, scopes }: Owned): void {
  demandPerson(principal)
  const agentScope = owner.startsWith(AGENT) ? owner.slice(AGENT.length) : null
  const touched = agentScope === null ? scopes : [...scopes, agentScope]
  const beyond = touched.find((pattern) => !coversScope(principal, pattern))
  if (beyond !== undefined) throw forbidden(`The ${kind} ${id} may act in ${beyond}, which the key ${principal.name} does not cover.`)
  if (agentScope === null && owner !== principal.name && !hasRole(principal, 'admin')) {
    throw forbidden(`The ${kind} ${id} is ${owner}'s: only ${owner} and admins change its state. ${ownWay[kind]}`)
  }
}

const ownWay: Record<Owned['kind'], string> = {
  reflex: 'Copy it to have one of your own.',
  skill: 'Register it under another id to have one of your own.',
}
