import type { z } from 'zod'
import { iso } from '../../../base/time.ts'
import type { controlPlane } from '../../../contract/reports/health.ts'
import type { Env } from '../../../env.ts'
import { readControlPlane } from '../store/control-plane.ts'
import { storeOf } from '../../../store/store.ts'
import { controlPlaneOf, controlPlaneProblem } from '../client/client.ts'

/** This deployment as a client of a control plane; null if it has none. */
export async function controlPlaneReport(env: Env): Promise<z.infer<typeof controlPlane> | null> {
  const client = controlPlaneOf(env)
  if (!client) return null
  const state = await readControlPlane(storeOf(env))
  const problem = controlPlaneProblem(env)
  const at = (ms: number | null | undefined) => (typeof ms === 'number' ? iso(ms) : null)
  const is_degraded = problem !== null || (state !== null && state.failing_since !== null)
  return {
    url: client.url,
    status: is_degraded ? 'degraded' : state ? 'ok' : 'waiting',
    error: problem ?? state?.error ?? null,
    failing_since: at(state?.failing_since),
    synced_at: at(state?.synced_at),
    revision: state?.revision ?? 0,
    skipped: Object.entries(state?.skipped ?? {}).map(([version, reason]) => ({ version, reason })),
  }
}
