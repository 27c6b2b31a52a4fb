import type { Env } from '../../env.ts'
import { readEpisodes, scopeSource, type Reading } from '../episodes/read.ts'
import type { Batch } from './steps-of-run.ts'

/** Episodes of one batch, which is written in one transaction. */
const MOST = 250

/** The decisions of a scope, from its log and from the archive. */
export async function* recordedHistory(env: Env, { scope, after }: { scope: string; after: string | null }): AsyncGenerator<Batch> {
  const source = scopeSource(env.SCOPE.getByName(scope))
  const after_seq = Number(after ?? 0)
  let reading: Reading | undefined
  for (let more = true; more;) {
    const read = await readEpisodes(source, { after_seq, most: MOST, reading })
    yield {
      episodes: read.episodes,
      skipped: read.skipped.map(({ reason, count: n }) => ({ reason, n })),
      watermark: String(read.watermark),
    }
    ;({ reading, more } = read)
  }
}
