import { randomUUID } from 'node:crypto'
import { Option, type Command } from 'commander'
import type { Deal, DealState } from '../../../src/contract/market/deal.ts'
import type { Colour } from '../../lib/paint.ts'
import { route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { fields, written } from '../table.ts'
import { wholeNumber } from '../values.ts'
import { given } from './given.ts'

const colours: Partial<Record<DealState, Colour>> = { offered: 'yellow', accepted: 'green', settled: 'green', rejected: 'red' }

type Offer = { buyer: string; price?: number; scope?: string[]; timeout?: number; id?: string }

export function addDeals(market: Command): void {
  market
    .command('offer <listing>')
    .description('Offer to buy; the money is held until the seller answers')
    .requiredOption('--buyer <account>', 'the account that pays, such as scope:shop/berlin')
    .addOption(new Option('--price <scrip>', 'another price than that of the listing').argParser(wholeNumber))
    .option('--scope <scope...>', 'the scopes of a licence; the scope of the buyer by default')
    .addOption(new Option('--timeout <seconds>', 'the offer expires after this time').argParser(wholeNumber))
    .option('--id <id>', 'your id of the offer: repeating it makes no second one')
    .action(
      handler(async ({ api, print, signal }, listing: string, { buyer, price, scope: scopes, timeout: timeout_s, id }: Offer) => {
        const body = given({ id: id ?? randomUUID(), buyer, price, scopes, timeout_s })
        const deal = await api().json<Deal>(route(['market', 'listings', listing, 'offers']), { method: 'POST', body, signal })
        shown(print, deal)
      }),
    )
  market
    .command('deal <id>')
    .description('Show a deal with its history')
    .action(
      handler(async ({ api, print, signal }, id: string) =>
        shown(print, await api().json<Deal>(route(['market', 'deals', id]), { signal })),
      ),
    )
  for (const [verb, description] of [
    ['accept', 'Accept an offer, as its seller: the goods and the money change hands together'],
    ['reject', 'Reject an offer, as its seller'],
    ['cancel', 'Cancel your offer'],
    ['refund', 'Return what is not used up, as the seller'],
  ] as const) {
    market
      .command(`${verb} <deal>`)
      .description(description)
      .option('--reason <text>', 'why, for the record')
      .action(
        handler(async ({ api, print, signal }, id: string, { reason }: { reason?: string }) => {
          const body = given({ reason })
          shown(print, await api().json<Deal>(route(['market', 'deals', id, verb]), { method: 'POST', body, signal }))
        }),
      )
  }
}

function shown(print: Session['print'], deal: Deal): void {
  const { history, delivery, terms, deal_id, status, artifact, kind, price, seller, buyer, paid, held, expires_at } = deal
  print.result(deal, (paint) => [
    ...fields({ deal_id, artifact, kind, price, seller, buyer, paid, held, expires_at, terms: JSON.stringify(terms) }, paint),
    ...(delivery ? [`delivered: ${written(delivery.artifact)}${delivery.in_use ? '' : ', no longer in use'}`] : []),
    ...history.map(({ at, state, by, reason }) => `  ${at}  ${state} by ${written(by)}${reason === null ? '' : `: ${written(reason)}`}`),
    paint(colours[status] ?? 'dim', status),
  ])
}
