import { coversScope } from '../../contract/principal.ts'
import type { ReflexState, ReflexVersion } from '../../contract/reflex.ts'
import { mergeMetrics } from '../../reflexes/metrics.ts'
import { promotable } from '../../reflexes/promotion.ts'
import { certificatesOf } from '../../store/artifacts/certificates.ts'
import { metricsOf } from '../../store/artifacts/reflex-metrics.ts'
import { conflict } from '../problems/refusals.ts'

/** Demands that a version of an agent is proven before a person activates it. */
export async function demandProof(
  db: D1Database,
  { id, version, state, scopes, provenance }: ReflexVersion,
  { wanted, now }: { wanted: ReflexState; now: number },
): Promise<void> {
  if (wanted !== 'active' || state === 'active' || provenance.scope === null) return
  // Scopes of other tenants may run it on events of their own choice, which proves nothing.
  const rows = (await metricsOf(db, id)).filter((row) => row.version === version && coversScope({ scopes }, row.scope))
  const proofs = (await certificatesOf(db, id, version)).filter(({ scope }) => coversScope({ scopes }, scope))
  const shown = promotable(
    proofs.map(({ certificate }) => certificate),
    mergeMetrics(rows.map(({ metrics }) => metrics)),
    now,
  )
  if (shown.ok) return
  const detail =
    `The agent of ${provenance.scope} wrote ${id}@${version}, and shadow mode has not proved it: ${shown.missing.join('; ')}. ` +
    'Leave it in shadow, or send "force": true.'
  throw conflict('not-proven', detail)
}
