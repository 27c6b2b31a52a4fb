/** Why the tests may live with some changes: `from` and `to` as the page shows them. */
export type Reason = { file: string; why: string; changes: readonly (readonly [from: string, to: string])[] }

export const reasons: readonly Reason[] = []

/** The same for breaks by hand, by their ids. */
export const reasonsByHand: Readonly<Record<string, string>> = {}
