import type { LedgerApi } from '../contract/ledger-api.ts'
import { defaultMarket, type MarketSettings } from '../contract/setting.ts'

/** The setting `market`; a later one has a higher revision. */
export type MarketSetting = { market: MarketSettings | null; revision: number }

/** Replicates the limits of the scope's account, and mints its opening grant, once. */
export async function replicateMarket(ledger: LedgerApi, account: string, { market, revision }: MarketSetting): Promise<void> {
  if (market && market.opening_grant > 0) {
    const grant = { id: `grant:${account}`, to: account, amount: market.opening_grant }
    await ledger.mint(grant, { name: 'settings', opens: [account], privileged: true })
  }
  const { per_transaction, per_hour, per_day, counterparties } = market ?? defaultMarket
  await ledger.setLimits(account, market && { per_transaction, per_hour, per_day, counterparties }, revision)
}
