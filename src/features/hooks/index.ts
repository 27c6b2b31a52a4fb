import type { Measure } from '../../events/deployment.ts'
import type { Feature } from '../../feature.ts'
import { storeOf } from '../../store/store.ts'
import { hookDeliveryRoutes, hookRoutes } from './http/hooks.ts'
import { countsOf, listHooks } from './store/hooks.ts'
import * as tables from './store/tables.ts'

/** The first hooks by address, of which Prometheus gets a series for each result. */
const MOST_MEASURED = 100

/** Addresses that take the webhooks of other systems, as events. */
export const hooks = {
  name: 'hooks',
  tables,
  open: [hookDeliveryRoutes],
  routes: () => [hookRoutes],
  measures: async (env, patterns) => [await deliveries(storeOf(env), patterns)],
} satisfies Feature

async function deliveries(db: D1Database, patterns: readonly string[]): Promise<Measure> {
  const listed = await listHooks(db, { patterns, after: '', limit: MOST_MEASURED })
  const addresses = listed.map(({ address }) => address)
  const samples = (await countsOf(db, addresses)).map(({ hook, result, count: value }) => ({ labels: { hook, result }, value }))
  const help = 'Deliveries of hooks by result; events if they were accepted or duplicates.'
  return { name: 'reflex_hook_deliveries_total', kind: 'counter', help, samples }
}
