import { isFrom, type Sent, trustedAmong } from '../reflexes/sources.ts'
import { refusalWords } from '../../../contract/lists/refusals.ts'
import { rejectedWords } from '../contract/decision-words.ts'
import type { LearningRun } from './store.ts'

type Crowd = NonNullable<LearningRun['episodes']['crowd']>

export const ended = (run: LearningRun, status: 'done' | 'failed', answer: string, now: number): LearningRun => ({
  ...run,
  status,
  answer,
  ended_at: now,
  progress: { ...run.progress, phase: 'done' },
})

/** With fewer decisions, their number is the reason. */
const LEAST = 40
/** Nothing is learned from one sender alone, which could teach what it likes. */
const LARGEST_SHARE = 1 / 3

type Trusting = Pick<LearningRun, 'trusted_sources' | 'set_sources'>

/** The sender of too many of the decisions; undefined if nobody is, or if it is trusted. */
export function crowdIn(episodes: readonly Sent[], { trusted_sources: trusts, set_sources = trusts }: Trusting): Crowd | undefined {
  const [most] = Array.from(Map.groupBy(episodes, ({ source }) => source)).sort(([, one], [, other]) => other.length - one.length)
  if (!most || episodes.length < LEAST || trustedAmong(episodes, trusts).has(most[0]) || most[1].length <= episodes.length * LARGEST_SHARE)
    return undefined
  // A name that the request alone has, and that nobody bears, is a mistake of its caller.
  const meant = trusts.filter((one) => set_sources.includes(one) || episodes.some((episode) => isFrom(episode, one)))
  return { sender: most[0], n: most[1].length, trusts: Array.from(new Set([...meant, most[0]])) }
}

/** The remedy for a crowd, in words. */
const remedy = (scope: string, used: number, { sender, n, trusts }: Crowd): string =>
  `${n} of ${used} decisions are about events of one sender, ${sender}, and a scope learns from many senders, or from those that you trust. ` +
  `If whoever writes the content of its events may teach this scope, trust it: reflex scope set ${scope} 'learning=${JSON.stringify({ trusted_sources: trusts })}'`

/** The result of a run in words. */
export function answerOf({ scope, candidates, rejected, episodes: { read, used, skipped, crowd } }: LearningRun): string {
  if (used === 0) {
    const [first] = skipped
    const why = first ? `none of its decisions could be used: ${first.reason}` : 'it has decided nothing by a turn yet'
    return `There is nothing to learn from in this scope: ${why}.`
  }
  const from = `${used} ${used === 1 ? 'decision' : 'decisions'}, ${read} of them new`
  const [first] = rejected
  if (candidates.length === 0 && crowd) return `Nothing was learned from ${from}: ${remedy(scope, used, crowd)}`
  if (candidates.length === 0) return `Nothing was learned from ${from}${first ? `: ${refusalWords(rejectedWords(first))}` : ''}.`
  return `${candidates.length} learned from ${from}; ${rejected.length} rejected.`
}
