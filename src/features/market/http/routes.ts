import { resource } from '../../../http/describe/operation.ts'
import { contractRoutes } from './contracts.ts'
import { dealRoutes } from './deals.ts'
import { discoveryRoutes } from './discovery.ts'
import { ledgerRoutes } from './ledger.ts'
import { listingRoutes } from './listings.ts'
import { statementRoutes } from './statements.ts'

export const marketRoutes = resource()
  .route('/', ledgerRoutes)
  .route('/', statementRoutes)
  .route('/', discoveryRoutes)
  .route('/', listingRoutes)
  .route('/', dealRoutes)
  .route('/', contractRoutes)
