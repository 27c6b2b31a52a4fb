import { resource } from '../describe/describe.ts'

/** The routes of the ledger and of the market. */
export const marketRoutes = resource()
