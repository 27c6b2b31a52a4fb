import type { Env } from './env.ts'
import type { FeatureInScope } from './engine/installed.ts'
import type { FeatureRetention } from './events/retention.ts'
import type { SweepStep } from './events/sweep.ts'
import type { FeatureRoutes } from './http/app.ts'

/**
 * A feature of a deployment. The frames render it: the HTTP interface mounts its routes, the sweep
 * takes its steps. `src/features/index.ts` lists the features.
 */
export type Feature = FeatureRoutes &
  FeatureInScope & {
    readonly name: string
    /** Steps of each sweep, after lost events were sent again and overdue scopes were woken. */
    readonly sweeps?: readonly SweepStep[]
    /** Runs each minute, by the cron alone. */
    readonly scheduled?: (env: Env, now: number) => Promise<void>
    /** Rows of its tables in D1 that the sweep deletes. */
    readonly forgets?: readonly FeatureRetention[]
  }
