import type { Context } from 'hono'
import type { EndedVersion } from '../../events/deployment.ts'
import type { AuthEnv } from '../auth/middleware.ts'

/** Tells the features that a sealed version runs no more. */
export async function versionEnded({ env, var: { features } }: Pick<Context<AuthEnv>, 'env' | 'var'>, ended: EndedVersion): Promise<void> {
  for (const feature of features) await feature.versionEnded?.(env, ended)
}
