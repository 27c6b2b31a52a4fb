import { z } from '@hono/zod-openapi'
import { iso } from '../../../base/time.ts'
import type { Env } from '../../../env.ts'
import { readControlPlane } from '../store/control-plane.ts'
import { storeOf } from '../../../store/store.ts'
import { controlPlaneOf, controlPlaneProblem } from '../client/client.ts'

const time = z.iso.datetime().nullable()
export const controlPlane = z.object({
  url: z.string(),
  status: z
    .enum(['waiting', 'ok', 'degraded'])
    .describe('`waiting`: before its first contact, by the cron. `degraded`: it does not answer; what it sent earlier is used.'),
  error: z.string().nullable(),
  failing_since: time,
  synced_at: time.describe('The last contact, to within five minutes.'),
  revision: z.int().describe('Of the feed of skills.'),
  skipped: z
    .array(z.object({ version: z.string(), reason: z.string() }))
    .describe('Versions of its skills that this deployment cannot take.'),
})

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
