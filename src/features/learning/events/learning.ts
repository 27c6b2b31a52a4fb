import { warn } from '../../../base/warn.ts'
import type { Env } from '../../../env.ts'
import { startLearning } from '../../../store/scopes.ts'
import { storeOf } from '../../../store/store.ts'

const HOUR_MS = 3_600_000
const DEFAULT_HOURS = 24
const AT_ONCE = 20

/** The interval of scheduled runs of learning. An invalid value counts as the default. */
function everyMs({ REFLEX_LEARN_EVERY_HOURS: text }: Pick<Env, 'REFLEX_LEARN_EVERY_HOURS'>): number {
  const hours = Number(text)
  return (text !== undefined && Number.isFinite(hours) && hours > 0 ? hours : DEFAULT_HOURS) * HOUR_MS
}

/** Starts runs in scopes whose last one is long ago. One that fails to start waits as long. */
export async function learnAgain(env: Env, now: number): Promise<number> {
  const scopes = await startLearning(storeOf(env), { before: now - everyMs(env), now, limit: AT_ONCE })
  const start = (scope: string) => env.LEARNER.getByName(scope).start({ scope, started_by: 'schedule', by: 'schedule' })
  const answers = await Promise.allSettled(scopes.map(start))
  for (const [index, answer] of answers.entries()) {
    if (answer.status === 'rejected') warn({ message: 'failed to start a run of learning', scope: scopes[index], error: answer.reason })
  }
  return answers.filter(({ status }) => status === 'fulfilled').length
}
