import type { ArtifactKind } from '../../contract/artifact.ts'
import { coversScope, hasRole, type Principal } from '../../contract/principal.ts'
import { scopeOfOwner } from '../../contract/reflex.ts'
import { forbidden } from '../problems/refusals.ts'

export type Goods = { id: string; version: string | number; owner_id: string; sealed: boolean }

/** True for its owner, admins, and keys that cover the scope whose agent owns it. */
export function readsContent(principal: Principal, { sealed, owner_id }: Pick<Goods, 'owner_id' | 'sealed'>): boolean {
  if (!sealed || owner_id === principal.key_id || hasRole(principal, 'admin')) return true
  const scope = scopeOfOwner(owner_id)
  return scope !== null && coversScope(principal, scope)
}

/** Refuses what would show the content, or what it does with inputs that the caller chooses. */
export function demandContent(principal: Principal, kind: ArtifactKind, goods: Goods): void {
  if (readsContent(principal, goods)) return
  throw forbidden(
    `The ${kind} ${goods.id}@${goods.version} is for sale, so only its owner reads, copies or tries it. ` +
      'Buy a licence or a copy, or try a listing of it on your own recordings: POST /v1/market/listings/ID/try.',
  )
}
