import type { Feature } from '../../feature.ts'
import { ledgerInDeployment } from './deployment.ts'
import { marketRoutes } from './http/routes.ts'
import { marketInScope, marketOf } from './scope/in-scope.ts'
import { marketChanged, serve } from './scope/market-calls.ts'
import * as ledger_tables from './store/ledger-tables.ts'
import * as tables from './store/tables.ts'
import type { MarketEvent, MarketView, ServiceCall } from './contract/view.ts'
import type { LedgerApi } from './contract/ledger-api.ts'
import type { Namespace } from '../../env.ts'

declare module '../../env.ts' {
  interface Env {
    /** The deployment has one object, `LEDGER`. */
    LEDGER: Namespace<LedgerApi>
  }
}

declare module '../../contract/scope-api.ts' {
  interface FeatureCalls {
    /**
     * The Ledger's push after a commit: the scope's part of the market, and what happened. Each
     * event is accepted once. `accepted` is false if the inbox is full: the Ledger repeats it.
     */
    marketChanged(view: MarketView, events: MarketEvent[]): Promise<{ accepted: boolean }>
    /** Serves a call under a contract, once per `invocation_id`: JSON of `Served`. */
    serve(call: ServiceCall): Promise<string>
  }
}

/** Accounts, and what scopes buy and sell: skills, reflexes and services. */
export const market = {
  name: 'market',
  inScope: marketInScope,
  calls: {
    marketChanged: async (scope, view, events) => marketChanged({ ...scope, market: marketOf(scope) }, view, events),
    serve: (scope, call) => serve({ ...scope, market: marketOf(scope) }, call),
  },
  routes: () => [marketRoutes],
  tables: { ...tables, ...ledger_tables },
  ...ledgerInDeployment,
} satisfies Feature
