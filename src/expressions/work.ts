/**
 * Counts the work of an evaluation, about a nanosecond per unit. The count is the same on every
 * machine, unlike a clock.
 */
export type Work = { left: number }

/** An evaluation: about 5 ms at most. */
export const EVALUATION_WORK = 5_000_000
/** All evaluations of one decision together: a manifest may hold 96 expressions. */
export const DECISION_WORK = 10_000_000

/** CEL's `||` and quantifiers swallow errors, so check `isSpent` after evaluating. */
export class WorkSpent extends Error {
  override readonly name = 'WorkSpent'
}

/** A single object for all: a stack for each remaining item would be expensive. */
const SPENT = new WorkSpent('the work is spent')

/** Evaluation is synchronous, so one variable holds the current account. */
let current: Work | null = null

export const isSpent = ({ left }: Work): boolean => left < 0

/** Takes units from the current evaluation. */
export function spend(units: number): void {
  if (current === null) throw new Error('an expression is evaluated outside of an account')
  current.left -= units
  if (current.left < 0) throw SPENT
}

/** Charges the work to an account, and to the account of an enclosing evaluation. */
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
