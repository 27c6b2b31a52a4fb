import type { LearningRun } from './store.ts'

export const ended = (run: LearningRun, status: 'done' | 'failed', answer: string, now: number): LearningRun => ({
  ...run,
  status,
  answer,
  ended_at: now,
  progress: { ...run.progress, phase: 'done' },
})

/** The result of a run in words. */
export function answerOf({ candidates, rejected, episodes: { read, used, skipped } }: LearningRun): string {
  if (used === 0) {
    const [first] = skipped
    const why = first ? `none of its decisions could be used: ${first.reason}` : 'it has decided nothing by a turn yet'
    return `There is nothing to learn from in this scope: ${why}.`
  }
  const from = `${used} ${used === 1 ? 'decision' : 'decisions'}, ${read} of them new`
  const [first] = rejected
  if (candidates.length === 0) return `Nothing was learned from ${from}${first ? `: ${first.what}: ${first.reason}` : ''}.`
  return `${candidates.length} learned from ${from}; ${rejected.length} rejected.`
}
