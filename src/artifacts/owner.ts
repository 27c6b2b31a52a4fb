import type { Owner } from '../contract/artifact.ts'
import { matchesScope } from '../contract/scope-pattern.ts'

/**
 * `may_take_over`: an admin may add versions to another owner's artifact, which keeps its owner.
 */
export type Contributor = Owner & { may_take_over?: boolean | undefined }

/**
 * The reason a contributor may not add a version to `what`. Even an admin must cover its scopes.
 */
export function refusalOf(what: string, { owner_id, scopes, may_take_over = false }: Contributor, owner: Owner): string | null {
  if (owner.owner_id !== owner_id && !may_take_over) return `The ${what} belongs to ${nameOf(owner)}. Copy it, or use another id.`
  const beyond = owner.scopes.find((pattern) => !scopes.some((own) => matchesScope(own, pattern)))
  return beyond === undefined ? null : `The ${what} may act in ${beyond}, which this key does not cover. Copy it, or use another id.`
}

/** Names of keys are not unique. */
const nameOf = ({ owner, owner_id }: Owner): string => (owner === owner_id ? owner : `another key, ${owner}`)

export const isSameOwner = (one: Owner, other: Owner): boolean =>
  one.owner_id === other.owner_id && JSON.stringify(one.scopes) === JSON.stringify(other.scopes)
