import type { Feature } from '../../feature.ts'
import type { Env } from '../../env.ts'
import { storeOf } from '../../store/store.ts'
import { LEDGER } from './contract/ledger-api.ts'
import { marketRoutes } from './http/routes.ts'
import { marketInScope, marketOf } from './scope/in-scope.ts'
import { marketChanged, serve } from './scope/market-calls.ts'
import { lapsedGoods } from './store/ownership.ts'

/** Accounts, and what scopes buy and sell: skills, reflexes and services. */
export const market: Feature = {
  name: 'market',
  inScope: marketInScope,
  calls: {
    marketChanged: async (scope, view, events) => marketChanged({ ...scope, market: marketOf(scope) }, view, events),
    serve: (scope, call) => serve({ ...scope, market: marketOf(scope) }, call),
  },
  routes: () => [marketRoutes],
  sweeps: [{ name: 'revoking licences', run: revokeLapsed }],
}

const PAGE = 100

/** Ends the licences of versions that run no more, if the change of their state could not do it. */
async function revokeLapsed(env: Env): Promise<number> {
  const lapsed = await lapsedGoods(storeOf(env), PAGE)
  for (const { artifact, hash, state } of lapsed) await env.LEDGER.getByName(LEDGER).revoke({ artifact, hash, reason: `it is ${state}` })
  return lapsed.length
}
