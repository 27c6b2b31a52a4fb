import type { ReflexHead } from '../../artifacts/kinds.ts'
import { actingReflexesFor } from '../../artifacts/look-up.ts'
import { iso } from '../../base/time.ts'
import { coversScope, type Principal } from '../../contract/principal.ts'
import type { Certificate } from '../../contract/certificate.ts'
import { idleSince } from '../../evidence/certificate.ts'
import { certificatesOfAll } from '../../features/proof/store/certificates.ts'

type Idle = { since: string | null; reason: string }
type Proof = { version: number; scope: string; certificate: Certificate }
type IdleVersion = Pick<ReflexHead, 'id' | 'version' | 'state' | 'by_proof'>

/** Set if a version that acts by proof acts nowhere, by the certificates of the scopes. */
export function idleOf({ version, state, by_proof }: IdleVersion, proofs: readonly Proof[], now: number): { idle?: Idle } {
  const own = state === 'active' && by_proof ? proofs.filter((proof) => proof.version === version) : []
  const idle = own.map(({ certificate }) => idleSince(certificate, now))
  const [first] = idle
  if (!first || idle.includes(null)) return {}
  return { idle: { since: first.at === null ? null : iso(first.at), reason: first.reason } }
}

/**
 * Says of each listed reflex which version acts, and of each listed version by proof whether it
 * acts in a scope that the key covers. A listed version that is active is the newest such one.
 */
export async function withActs<Listed extends IdleVersion>(
  db: D1Database,
  items: readonly Listed[],
  principal: Principal,
): Promise<{ one: Listed; acts: number | null; idle?: Idle }[]> {
  const ids = items.flatMap(({ id, state, by_proof }) => (state === 'active' && by_proof ? [id] : []))
  const others = items.flatMap(({ id, state }) => (state === 'active' ? [] : [id]))
  const [proofs, acting] = await Promise.all([
    ids.length === 0 ? [] : certificatesOfAll(db, ids),
    actingReflexesFor(db, others, { key: principal }),
  ])
  const covered = Map.groupBy(
    proofs.filter(({ scope }) => coversScope(principal, scope)),
    ({ reflex_id }) => reflex_id,
  )
  const now = Date.now()
  const actsOf = ({ id, version, state }: Listed) => (state === 'active' ? version : (acting.get(id) ?? null))
  return items.map((one) => ({ one, acts: actsOf(one), ...idleOf(one, covered.get(one.id) ?? [], now) }))
}
