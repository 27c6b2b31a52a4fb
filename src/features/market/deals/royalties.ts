/** The accounts that it was bought from, and their shares; nearest first. */
export type RoyaltyLine = { account: string; percent: number }[]
export const LONGEST_LINE = 10

/**
 * Divides what a sale has paid so far: the seller's share, and the shares along the line of copies.
 * Each account of the line takes its percentage of what the one before it receives, so that a line
 * of any length, or one that returns to an account, never takes more than was paid.
 */
function sharesOf(paid: number, seller: string, line: RoyaltyLine): Map<string, number> {
  const shares = new Map<string, number>()
  const add = (account: string, amount: number) => shares.set(account, (shares.get(account) ?? 0) + amount)
  let holder = seller
  let received = paid
  for (const { account, percent } of line.slice(0, LONGEST_LINE)) {
    const royalty = Number((BigInt(received) * BigInt(percent)) / 100n)
    add(holder, received - royalty)
    holder = account
    received = royalty
  }
  add(holder, received)
  return shares
}

/** The payments as the sum paid grows. The payments of all steps add up exactly. */
export function sharesBetween(before: number, after: number, seller: string, line: RoyaltyLine): { account: string; amount: number }[] {
  const earlier = sharesOf(before, seller, line)
  return Array.from(sharesOf(after, seller, line), ([account, amount]) => ({
    account,
    amount: amount - (earlier.get(account) ?? 0),
  })).filter(({ amount }) => amount > 0)
}
