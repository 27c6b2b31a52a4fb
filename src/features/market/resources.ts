import type { Resource } from '../../contract/operation.ts'
import { contracts } from './operations/contracts.ts'
import { accept, cancel, find as findDeal, list, offer, refund, reject } from './operations/deals.ts'
import { ledger } from './operations/ledger.ts'
import { close, create, find, search, tryOut } from './operations/listings.ts'

const examples = `
Figures are those that the platform measured; a seller cannot set them.

Examples:
  reflex market search refund --type order.new --max-price 50
  reflex market try LISTING --scope shop/berlin --since 7d
  reflex market offer LISTING --buyer scope:shop/berlin
  reflex market list reflex:refunds@3 --kind licence --price 20 --days 30 --seller scope:shop/paris`

const market: Resource = {
  noun: 'market',
  help: 'Buy and sell reflexes and skills',
  examples,
  verbs: [search, find, create, close, tryOut, offer, list, findDeal, accept, reject, cancel, refund, contracts],
}
export const resources: readonly Resource[] = [market, ledger]
