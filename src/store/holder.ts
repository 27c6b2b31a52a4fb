import { matchesScope } from '../contract/scope-pattern.ts'

/** Who made the first version of a reflex or a skill holds it, for good; `scopes` are the patterns that it may touch. */
export type Holder = { owner: string; owner_id: string; scopes: readonly string[] }
/** Who adds a version. `may_take_over`: an admin adds to what another owns, who stays its owner. */
export type Contributor = Holder & { may_take_over?: boolean | undefined }

/**
 * Why somebody adds no version to `what` (`reflex greet`); null where he may. Also an admin has to
 * cover all its scopes.
 */
export function refusalOf(what: string, { owner_id, scopes, may_take_over = false }: Contributor, holder: Holder): string | null {
  if (holder.owner_id !== owner_id && !may_take_over) return `The ${what} is ${ownerOf(holder)}.`
  const beyond = holder.scopes.find((pattern) => !scopes.some((own) => matchesScope(own, pattern)))
  return beyond === undefined ? null : `The ${what} may act in ${beyond}, which this key does not cover.`
}

/** Other keys may have the same name. */
const ownerOf = ({ owner, owner_id }: Holder): string => (owner === owner_id ? `${owner}'s` : `that of another key, ${owner}`)

export const isHeldBy = (one: Holder, holder: Holder): boolean =>
  one.owner_id === holder.owner_id && JSON.stringify(one.scopes) === JSON.stringify(holder.scopes)
