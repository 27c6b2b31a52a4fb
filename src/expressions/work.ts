/**
 * Counts what an evaluation does, so that it can be stopped: the number of nodes says nothing about
 * the time, for one `contains` may compare a hundred million characters. A unit takes about a
 * nanosecond at most on the machine that this was calibrated on. Counting gives the same result on
 * every machine, where a clock would not.
 */
export type Work = { left: number }

/** One evaluation: about 5 ms at most. */
export const EVALUATION_WORK = 5_000_000
/** All evaluations of one decision together: a manifest may hold 96 expressions. */
export const DECISION_WORK = 10_000_000

/**
 * Thrown where the work is spent. CEL's `||` and quantifiers swallow errors, so whoever evaluates
 * asks `isSpent` at the end, too.
 */
export class WorkSpent extends Error {
  override readonly name = 'WorkSpent'
}

/**
 * One object for all: it is thrown once for each item that is left of an iteration, and taking a
 * stack costs.
 */
const SPENT = new WorkSpent('the work is spent')

/**
 * Evaluation is synchronous, so that one variable tells the operators on whose account they work.
 */
let current: Work | null = null

export const isSpent = ({ left }: Work): boolean => left < 0

/** Takes units from the current evaluation. */
export function spend(units: number): void {
  if (current === null) throw new Error('an expression is evaluated outside of an account')
  current.left -= units
  if (current.left < 0) throw SPENT
}

/**
 * Runs on an account. An evaluation within another one, by a function of the host, is charged to
 * both.
 */
export function onAccount<Result>(work: Work, evaluate: () => Result): Result {
  const outer = current
  const before = work.left
  current = work
  try {
    return evaluate()
  } finally {
    current = outer
    if (outer !== null && outer !== work) outer.left -= before - work.left
  }
}
