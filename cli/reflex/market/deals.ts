import { randomUUID } from 'node:crypto'
import { Option, type Command } from 'commander'
import type { Deal, DealState } from '../../../src/contract/market/deal.ts'
import type { Colour } from '../../lib/paint.ts'
import { counted } from '../../lib/text.ts'
import { pages, route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { fields, written, type Column } from '../table.ts'
import { limitOption, wholeNumber } from '../values.ts'
import { given } from './given.ts'
import { termsText } from './terms.ts'

const colours: Partial<Record<DealState, Colour>> = { offered: 'yellow', accepted: 'green', settled: 'green', rejected: 'red' }

const columns: Column<Deal>[] = [
  { title: 'DEAL', of: ({ deal_id }) => deal_id },
  { title: 'STATUS', of: ({ status }) => status, colour: ({ status }) => colours[status] ?? null },
  { title: 'PRICE', of: ({ price }) => price },
  { title: 'PAID', of: ({ paid }) => paid },
  { title: 'KIND', of: ({ kind }) => kind },
  { title: 'ARTIFACT', of: ({ artifact }) => artifact },
  { title: 'SELLER', of: ({ seller }) => seller },
  { title: 'BUYER', of: ({ buyer }) => buyer },
]

type Offer = { buyer: string; price?: number; scope?: string[]; timeout?: number; id?: string }

export function addDeals(market: Command): void {
  market
    .command('offer <listing>')
    .description('Offer to buy; the money is held until the seller answers')
    .requiredOption('--buyer <account>', 'the account that pays, such as scope:shop/berlin')
    .addOption(new Option('--price <scrip>', 'another price than that of the listing').argParser(wholeNumber))
    .option('--scope <scope...>', 'the scopes of a licence; the scope of the buyer by default')
    .addOption(new Option('--timeout <seconds>', 'the offer expires after this time; a day by default').argParser(wholeNumber))
    .option('--id <id>', 'your id of the offer: repeating it makes no second one')
    .action(
      handler(async ({ api, print, signal }, listing: string, { buyer, price, scope: scopes, timeout: timeout_s, id }: Offer) => {
        const body = given({ id: id ?? randomUUID(), buyer, price, scopes, timeout_s })
        const deal = await api().json<Deal>(route(['market', 'listings', listing, 'offers']), { method: 'POST', body, signal })
        shown(print, deal)
      }),
    )
  market
    .command('deals')
    .description('List the deals of an account, oldest first')
    .requiredOption('--account <account>', 'the buyer or the seller, such as scope:shop/berlin')
    .addOption(limitOption(20))
    .action(
      handler(async ({ api, print, signal }, { account, limit }: { account: string; limit: number }) => {
        const found = await pages<Deal>(api(), { parts: ['market', 'deals'], query: { account }, limit, most: 100, signal })
        print.page(found, columns, 'The account has no deals.')
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
    ['refund', 'End a licence: what is not used up returns'],
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
  const { deal_id, status, artifact, kind, scopes, price, seller, buyer, paid, held, delivery, history } = deal
  const answer_by = status === 'offered' ? deal.expires_at : undefined
  const terms = termsText(deal.terms)
  print.result(deal, (paint) => [
    ...fields({ deal_id, status, artifact, kind, scopes: scopes?.join(', '), terms, price, seller, buyer, paid, held, answer_by }, paint),
    ...(delivery ? deliveryLines(delivery) : []),
    ...history.map(({ at, state, by, reason }) => `  ${at}  ${state} by ${written(by)}${reason === null ? '' : `: ${written(reason)}`}`),
  ])
}

function deliveryLines({ artifact, used, in_use }: NonNullable<Deal['delivery']>): string[] {
  const uses = Object.entries(used).map(([scope, fires]) => `  ${written(scope)}: ${counted(fires, 'action')}`)
  return [`delivered: ${written(artifact)}${in_use ? '' : ', no longer in use'}`, ...uses]
}
