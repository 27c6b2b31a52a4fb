import { resource } from '../describe/describe.ts'
import { dealRoutes } from './deals.ts'
import { listingRoutes } from './listings.ts'

/** The routes of the ledger and of the market. */
export const marketRoutes = resource().route('/', listingRoutes).route('/', dealRoutes)
