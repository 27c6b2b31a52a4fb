import { coversScope, hasRole, type Principal } from '../auth/principal.ts'
import type { ReflexVersion } from '../protocol/reflex.ts'
import { forbidden } from './refusals.ts'

const AGENT = 'scope:'

/** What agents own is owned under their scope's name, and no key may pass as one. */
export function demandPerson({ name }: Principal): void {
  if (name.startsWith(AGENT)) throw forbidden(`The key ${name} is named as an agent: what begins with ${AGENT} owns no reflexes by a key.`)
}

/** Its owner and any admin, and who operates the scope whose agent wrote it. A key's name alone is no proof: it must also cover what the reflex may touch. */
export function demandControl(principal: Principal, { id, owner, scopes }: ReflexVersion): void {
  demandPerson(principal)
  const agentScope = owner.startsWith(AGENT) ? owner.slice(AGENT.length) : null
  const touched = agentScope === null ? scopes : [...scopes, agentScope]
  const beyond = touched.find((pattern) => !coversScope(principal, pattern))
  if (beyond !== undefined) throw forbidden(`The reflex ${id} may act in ${beyond}, which the key ${principal.name} does not cover.`)
  if (agentScope === null && owner !== principal.name && !hasRole(principal, 'admin')) {
    throw forbidden(`The reflex ${id} is ${owner}'s: only ${owner} and admins change its state. Copy it to have one of your own.`)
  }
}
