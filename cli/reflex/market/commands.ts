import { Option, type Command } from 'commander'
import type { FoundListing, Listing } from '../../../src/contract/market/listing.ts'
import type { TrialReport } from '../../../src/contract/market/trial.ts'
import { contracts } from '../../../src/contract/operations/contracts.ts'
import { accept, cancel, find, list as listDeals, offer, refund, reject, termsText } from '../../../src/contract/operations/deals.ts'
import { counted } from '../../lib/text.ts'
import { addOperation, addResource } from '../operation.ts'
import { pages, route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { fields, written, type Column } from '../table.ts'
import { instant, isoTime, limitOption, wholeNumber } from '../values.ts'
import { given } from './given.ts'

const HELP = `
Figures are those that the platform measured; a seller cannot set them.

Examples:
  reflex market search refund --type order.new --max-price 50
  reflex market try LISTING --scope shop/berlin --since 7d
  reflex market offer LISTING --buyer scope:shop/berlin
  reflex market list reflex:refunds@3 --kind licence --price 20 --days 30 --seller scope:shop/paris`

const percent = (share: number): string => `${Math.floor(share * 1000) / 10} %`
const columns: Column<FoundListing>[] = [
  { title: 'LISTING', of: ({ listing_id }) => listing_id },
  { title: 'PRICE', of: ({ price }) => price },
  { title: 'KIND', of: ({ kind }) => kind },
  { title: 'POINTS', of: ({ rank }) => rank.score },
  { title: 'AGREES', of: ({ figures: { agreement } }) => agreement && `>= ${percent(agreement.lower_bound)} ${agreement.state}` },
  { title: 'FIRES', of: ({ figures }) => figures.fires },
  { title: 'SAVES/1000', of: ({ figures: { usd_saved_per_1000: usd } }) => usd && `$${usd.toPrecision(3)}` },
  { title: 'ARTIFACT', of: ({ artifact }) => artifact },
  { title: 'DESCRIPTION', of: ({ description }) => description },
]

export function addMarket(program: Command): void {
  const market = program.command('market').description('Buy and sell reflexes and skills').addHelpText('after', HELP)
  addSearch(market)
  addSelling(market)
  market
    .command('try <listing>')
    .description('Evaluate a listed reflex on what your scope recorded, before you pay for it')
    .requiredOption('--scope <scope>', 'the scope, whose account pays the fee if there is one')
    .addOption(
      new Option('--since <time>', 'on the events since then: 10m ago, or an ISO time')
        .argParser((text) => instant(text))
        .makeOptionMandatory(),
    )
    .option('--id <id>', 'your id of the trial: repeating it pays no second fee')
    .action(handler(tryOut))
  for (const op of [offer, listDeals, find, accept, reject, cancel, refund]) addOperation(market, op)
  addResource(market, contracts)
}

type Search = { kind?: string; type?: string; tool?: string; seller?: string; maxPrice?: number; sort?: string; limit: number }

function addSearch(market: Command): void {
  market
    .command('search [words...]')
    .description('Search open listings, best first')
    .addOption(new Option('--kind <kind>', 'of one kind').choices(['licence', 'copy', 'ownership']))
    .option('--type <type>', 'for an event type')
    .option('--tool <tool>', 'that call a tool')
    .option('--seller <account>', 'of one seller')
    .addOption(new Option('--max-price <scrip>', 'up to a price').argParser(wholeNumber))
    .addOption(new Option('--sort <order>', 'the order').choices(['rank', 'price', 'newest', 'agreement', 'saved', 'fires']))
    .addOption(limitOption(20))
    .action(
      handler(async ({ api, print, signal }, words: string[], { limit, maxPrice: max_price, ...rest }: Search) => {
        const q = words.join(' ').trim()
        const query = { ...rest, max_price, q: q === '' ? undefined : q }
        const found = await pages<FoundListing>(api(), { parts: ['market', 'listings'], query, limit, most: 100, signal })
        print.page(found, columns, 'No listing matches.')
      }),
    )
  market.command('show <listing>').description('Show a listing, with its figures and the reasons of its rank').action(handler(show))
}

async function show({ api, print, signal }: Session, id: string): Promise<void> {
  const listing = await api().json<FoundListing>(route(['market', 'listings', id]), { signal })
  const { terms, event_types, tools, figures, rank, measured_at, ...rest } = listing
  const { agreement, event_types: seen, ...counts } = figures
  const agrees = agreement && `at least ${percent(agreement.lower_bound)}, ${agreement.state} over ${agreement.compared}`
  print.result(listing, (paint) => [
    ...fields({ ...rest, event_types: event_types.join(', '), tools: tools.join(', '), terms: termsText(terms) }, paint),
    ...fields({ ...counts, agreement: agrees, measured_types: seen.join(', ') }, paint),
    `${rank.score} points, measured at ${measured_at}:`,
    ...rank.because.map(({ points, reason }) => `  ${String(points).padStart(5)}  ${written(reason)}`),
  ])
}

type New = {
  kind: string
  price: number
  seller: string
  days?: number
  fires?: number
  perDecision?: number
  scopes?: number | 'any'
  resale?: true
  royalty?: number
  trialFee?: number
  expires?: string
}

function addSelling(market: Command): void {
  market
    .command('list <artifact>')
    .description('Offer a version for sale: reflex:ID@VERSION or skill:ID@VERSION. Its code is hidden from then on')
    .addOption(
      new Option('--kind <kind>', 'licence: to run it; copy: its code; ownership: it changes hands')
        .choices(['licence', 'copy', 'ownership'])
        .makeOptionMandatory(),
    )
    .addOption(new Option('--price <scrip>', 'the price').argParser(wholeNumber).makeOptionMandatory())
    .requiredOption('--seller <account>', 'the account that owns it, such as scope:shop/paris')
    .addOption(new Option('--days <n>', 'a licence ends after this time').argParser(wholeNumber))
    .addOption(new Option('--fires <n>', 'a licence ends after this number of actions in a scope').argParser(wholeNumber))
    .addOption(new Option('--per-decision <scrip>', 'paid per certified decision, out of the price').argParser(wholeNumber))
    .addOption(
      new Option('--scopes <n>', 'a licence may name this many scopes, 1 by default; any: patterns, too').argParser((text) =>
        text === 'any' ? text : wholeNumber(text),
      ),
    )
    .option('--resale', 'the buyer of a copy may sell copies of it')
    .addOption(new Option('--royalty <percent>', 'your share of each resale, at most 50').argParser(wholeNumber))
    .addOption(new Option('--trial-fee <scrip>', 'paid for each trial').argParser(wholeNumber))
    .addOption(new Option('--expires <time>', 'the listing ends then: an ISO time').argParser(isoTime))
    .action(handler(list))
  market
    .command('unlist <listing>')
    .description('End a listing; licences that were sold stay')
    .action(
      handler(async ({ api, print, signal }, id: string) => {
        await api().json(route(['market', 'listings', id]), { method: 'DELETE', signal })
        print.result({ unlisted: id }, () => [`${written(id)} is no longer listed.`])
      }),
    )
}

async function list({ api, print, signal }: Session, artifact: string, options: New): Promise<void> {
  const { kind, price, seller, days, fires, perDecision, scopes, resale, royalty, trialFee, expires } = options
  const limits = { days, fires, per_decision: perDecision, most_scopes: scopes }
  const terms = given({ ...limits, resale, royalty_percent: royalty, trial_fee: trialFee })
  const body = given({ artifact, kind, price, seller, terms, expires_at: expires })
  const listing = await api().json<Listing>(route(['market', 'listings']), { method: 'POST', body, signal })
  print.result(listing, () => [`${written(listing.artifact)} is listed as ${written(listing.listing_id)} for ${listing.price} scrip.`])
}

async function tryOut({ api, print, signal }: Session, id: string, body: { scope: string; since: string; id?: string }): Promise<void> {
  const report = await api().json<TrialReport>(route(['market', 'listings', id, 'try']), { method: 'POST', body, signal })
  const { contexts, fires, agreement, missed, would_save, fee, truncated, disagreements, stages } = report
  print.result(report, () => [
    `On ${counted(contexts.recorded + contexts.rebuilt, 'event')} of ${written(report.scope)} it fires ${counted(fires, 'time')}: ` +
      `${agreement.agreed} agree with what was decided, ${agreement.disagreed} differ, ${agreement.not_compared} cannot be compared.`,
    `It leaves ${counted(missed, 'event')} on which an action was taken to others.${truncated ? ' The range was too long: this is its first part.' : ''}`,
    ...(stages
      ? [
          `Its gate: ${Object.entries(stages)
            .map(([stage, events]) => `${written(stage)} ${events}`)
            .join(', ')}.`,
        ]
      : []),
    ...(would_save
      ? [`It would have saved about ${would_save.model_calls.toFixed(1)} model calls and $${would_save.usd.toPrecision(3)}.`]
      : []),
    ...disagreements.map(({ event_id, action_type }) => `  differs on ${written(event_id)}: ${written(action_type)}`),
    ...(fee > 0 ? [`The fee was ${fee}.`] : []),
  ])
}
