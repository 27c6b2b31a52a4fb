import type { Env } from '../../env.ts'
import type { Batch } from './steps-of-run.ts'

/** The decisions of a scope. */
export async function* recordedHistory(_env: Env, _of: { scope: string; after: string | null }): AsyncGenerator<Batch> {}
