import type { Batch } from '../../src/features/learning/run/steps-of-run.ts'

/** Histories that tests write for a learner, by scope, in place of what the scope's log has. */
export const histories = new Map<string, (after: number) => AsyncIterable<Batch>>()
