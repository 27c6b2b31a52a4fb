import type { Feature } from '../../feature.ts'
import { agUiRoutes } from './http/ag-ui/ag-ui.ts'
import { protocolRoutes } from './http/routes.ts'

/** A2A, AG-UI and MCP: how other agents and their tools reach a deployment. */
export const protocols = {
  name: 'protocols',
  routes: (api) => [agUiRoutes, protocolRoutes(api)],
} satisfies Feature
