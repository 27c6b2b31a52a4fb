type Refusal = { what: string; reason: string }

/** The line for a refusal, whose subject is left out where it is about all decisions. */
export const refusalWords = ({ what, reason }: Refusal): string => (what === 'all decisions' ? reason : `“${what}”: ${reason}`)

/** The refusals that the answer of a run leaves out. */
export const untold = <Item extends Refusal>({ answer, rejected }: { answer: string; rejected: readonly Item[] }): Item[] =>
  rejected.filter((one) => !answer.includes(refusalWords(one)))
