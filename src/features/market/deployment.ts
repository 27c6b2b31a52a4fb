import { messageOf } from '../../base/error-text.ts'
import { iso } from '../../base/time.ts'
import { warn } from '../../base/warn.ts'
import type { Alert } from '../../contract/alert.ts'
import { sizeSeenBy } from '../../contract/principal.ts'
import type { Env } from '../../env.ts'
import { limitOf, type DeploymentFeature } from '../../events/deployment.ts'
import { storeOf } from '../../store/store.ts'
import { LEDGER } from './contract/ledger-api.ts'
import { ledgerDays } from './limits.ts'
import { lapsedGoods } from './store/ownership.ts'

const PAGE = 100
const MB = 1_000_000
/** An object holds at most 10 GB. */
const DEFAULT_ALERT_MB = 5000
const DEALS = 'deal:'

const ledgerOf = (env: Env) => env.LEDGER.getByName(LEDGER)

/** The Ledger as a part of the deployment. */
export const ledgerInDeployment = {
  health: async (env, patterns) => ({
    ledger: { bytes: sizeSeenBy(patterns, await ledgerOf(env).size()), retention_days: ledgerDays(env) },
  }),
  measures: async (env, patterns) => {
    const bytes = await ledgerOf(env)
      .size()
      .catch(() => null)
    // Without a sample if nobody answered: a 0 would say that it is empty.
    const samples = bytes === null ? [] : [{ value: sizeSeenBy(patterns, bytes) }]
    return [{ name: 'reflex_ledger_bytes', kind: 'gauge', help: 'What the Ledger object holds, of at most 10 GB.', samples }]
  },
  alerts: async (env, { hour }) => {
    // An alert about the database must not depend on it.
    const bytes = await ledgerOf(env)
      .size()
      .catch(() => 0)
    return sizeAlert(bytes, { limit: limitOf(env.REFLEX_ALERT_LEDGER_MB, DEFAULT_ALERT_MB) * MB, hour })
  },
  keyDeleted: (env, { id, name }) => ledgerOf(env).closeAccount(`key:${name}`, id),
  retries: { origin: 'market', run: (env, ids) => ledgerOf(env).deliverAgain(ids.map((id) => id.slice(DEALS.length))) },
  versionEnded: async (env, { artifact, hash, reason }) => {
    try {
      await ledgerOf(env).revoke({ artifact, hash, reason })
    } catch (error) {
      warn({ message: 'failed to revoke licences; the sweep will retry', artifact, error: messageOf(error) })
    }
  },
  sweeps: [{ name: 'revoking licences', run: revokeLapsed }],
} satisfies DeploymentFeature

export function sizeAlert(bytes: number, { limit, hour }: { limit: number; hour: number }): Alert[] {
  if (bytes < limit) return []
  const summary = `the Ledger object has ${Math.round(bytes / MB)} MB of at most 10,000`
  return [{ id: `ledger-size:${iso(hour)}`, name: 'ledger-size', summary, details: { bytes } }]
}

/** Ends the licences of versions that run no more, if the change of their state could not do it. */
async function revokeLapsed(env: Env): Promise<number> {
  const lapsed = await lapsedGoods(storeOf(env), PAGE)
  for (const { artifact, hash, state } of lapsed) await ledgerOf(env).revoke({ artifact, hash, reason: `it is ${state}` })
  return lapsed.length
}
