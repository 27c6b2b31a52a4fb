import type { FeatureInScope } from './engine/installed.ts'
import type { DeploymentFeature } from './events/deployment.ts'
import type { FeatureRoutes } from './http/app.ts'

/** A feature of a deployment: its routes, its part of a scope, and what it does for the whole. */
export type Feature = FeatureRoutes & FeatureInScope & DeploymentFeature & { readonly name: string }
