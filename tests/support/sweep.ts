import type { Env } from '../../src/env.ts'
import type { RetentionStep } from '../../src/events/retention.ts'
import { sweep as sweepBy } from '../../src/events/sweep.ts'
import { features } from '../../src/features/index.ts'

/** Sweeps as a deployment with all features does. */
export const sweep = (env: Env, now: number, retention: readonly RetentionStep[] = []) => sweepBy(env, now, { features, retention })
