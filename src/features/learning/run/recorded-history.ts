import type { Env } from '../../../env.ts'
import { readEpisodes, scopeSource } from '../episodes/read.ts'
import type { Batch } from './steps-of-run.ts'

/** Their contexts are rebuilt at once, and others may call the learner between two batches. */
const MOST = { most: 50, most_entries: 1000 } as const

type Of = { scope: string; after: number; lead?: number | undefined }

/** The decisions that the log of a scope has, and its archive. */
export async function* recordedHistory(env: Env, { scope, after, lead }: Of): AsyncGenerator<Batch> {
  const source = scopeSource(env.SCOPE.getByName(scope))
  let read = await readEpisodes(source, { ...MOST, after_seq: after, lead })
  yield read
  while (read.more) {
    read = await readEpisodes(source, { ...MOST, reading: read.reading })
    yield read
  }
}
