import { type AskedAgain, MOST_ASKED } from '../../contract/reports/audit.ts'
import { isJsonFields } from '../../base/json.ts'
import type { Env } from '../../env.ts'
import type { EpisodeAct } from '../episode.ts'
import type { Ask } from './findings.ts'
import { majority, same } from './policy.ts'
import type { LearnerStore, Run } from './store.ts'

/** With the decision itself, the majority of three counts. */
const ANSWERS = 2
/** After these, the run does without the answers. */
const MOST_FAILURES = 3
const AT_ONCE = Math.min(5, MOST_ASKED)

/**
 * Asks once about some of the events. `after` writes what is settled, and returns how many
 * decisions changed. If the object dies before that, the slow path is asked once more.
 */
export async function askAgain(run: Run, { env }: { env: Env }) {
  const asked = run.asks.slice(0, AT_ONCE)
  const json = await env.SCOPE.getByName(run.scope).askAgain(asked.map(({ id }) => id))
  const answers = new Map((JSON.parse(json) as AskedAgain[]).map((answer) => [answer.event_id, answer]))
  const [open, settled]: [Ask[], Ask[]] = [[], []]
  for (const ask of asked) {
    const answer = answers.get(ask.id)
    if (answer && !answer.ok && answer.reason === 'later') {
      if (run.failures < MOST_FAILURES) throw new Error(`the slow path cannot be asked now: ${answer.detail}`)
      return { answered: { asks: [], settled: 0 }, after: () => 0 }
    }
    const acts = answer ? actsOf(answer) : null
    const all = acts ? [...ask.answers, acts] : ask.answers
    const into = acts && all.length < ANSWERS ? open : settled
    into.push({ id: ask.id, answers: all })
  }
  const asks = [...open, ...run.asks.slice(AT_ONCE)]
  const after = (store: LearnerStore): number => settled.filter(({ id, answers: all }) => settle(id, all, store)).length
  return { answered: { asks, settled: settled.length }, after }
}

/** Null if there is no answer about the event alone. */
function actsOf(answer: AskedAgain): EpisodeAct[] | null {
  if (!answer.ok || answer.event_ids.length > 1) return null
  return answer.did.map(({ kind, name, input }) => ({
    kind,
    name,
    input: isJsonFields(input) ? input : {},
    ok: true,
    cost_usd: 0,
    duration_ms: 0,
  }))
}

/** True if the decision is another one now. */
function settle(id: string, answers: readonly EpisodeAct[][], store: LearnerStore): boolean {
  const episode = store.episode(id)
  if (!episode) return false
  const acts = answers.length < ANSWERS ? episode.acts : majority([episode.acts, ...answers])
  store.settle(id, acts)
  return !same(acts, episode.acts)
}
