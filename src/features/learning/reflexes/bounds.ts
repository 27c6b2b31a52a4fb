/**
 * Parts of the errors that a bound of 95 % allows. A proof takes long unless what it is for errs
 * less. Rules may err in the first share of the newer decisions. A table has the strictest of the
 * others that leaves enough of its decisions.
 */
const PARTS = { rules: 0.2, table: [0.15, 0.2, 0.25, 0.3] } as const
const USUAL = 0.05
/** A stricter bound aims at a larger part of the few errors that it allows: proofs take longer. */
const MOST_PART = 0.5

const errors = (bound: number, part: number): number => Math.max(part * (1 - bound), Math.min(part * USUAL, MOST_PART * (1 - bound)))

/** True if rules err in few enough of the newer decisions that they take. */
export const errsLittle = (bound: number, { covered, agreed }: { covered: number; agreed: number }): boolean =>
  covered - agreed <= covered * errors(bound, PARTS.rules)

/** Shares of errors that a table aims at, the strictest first. */
export const errorsOfTable = (bound: number): number[] => Array.from(new Set(PARTS.table.map((part) => errors(bound, part))))
