import { a2aRoutes } from './a2a/routes.ts'
import { resource } from '../../../http/describe/operation.ts'
import { inspectRoutes, type WorkerApi } from './mcp/inspect/routes.ts'
import { mcpRoutes } from './mcp/routes.ts'

/** Protocols by which other agents and their tools reach this deployment. */
export const protocolRoutes = (api: () => WorkerApi) =>
  resource().route('/', mcpRoutes).route('/', inspectRoutes(api)).route('/', a2aRoutes)
