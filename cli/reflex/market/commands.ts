import type { Command } from 'commander'
import { contracts } from '../../../src/features/market/operations/contracts.ts'
import { accept, cancel, find as findDeal, list, offer, refund, reject } from '../../../src/features/market/operations/deals.ts'
import { close, create, find, search, tryOut } from '../../../src/features/market/operations/listings.ts'
import { addOperation, addResource } from '../operation.ts'

const HELP = `
Figures are those that the platform measured; a seller cannot set them.

Examples:
  reflex market search refund --type order.new --max-price 50
  reflex market try LISTING --scope shop/berlin --since 7d
  reflex market offer LISTING --buyer scope:shop/berlin
  reflex market list reflex:refunds@3 --kind licence --price 20 --days 30 --seller scope:shop/paris`

export function addMarket(program: Command): void {
  const market = program.command('market').description('Buy and sell reflexes and skills').addHelpText('after', HELP)
  const verbs = [search, find, create, close, tryOut, offer, list, findDeal, accept, reject, cancel, refund]
  for (const op of verbs) addOperation(market, op)
  addResource(market, contracts)
}
