import type { DryAnswer } from '../../../engine/turns/dry/dry-turn.ts'

/** Longest wait for the model or its budget: an older decision is not worth the question. */
export const MOST_WAIT_MS = 86_400_000
/** Bounds of the pause before the next try. */
export const AGAIN_MS = { least: 1000, unknown: 60_000, most: 600_000 } as const

export function pauseUntil({ until }: Pick<DryAnswer, 'until'>, now: number): number {
  return until === null ? AGAIN_MS.unknown : Math.min(Math.max(until - now, AGAIN_MS.least), AGAIN_MS.most)
}
