import { z } from 'zod'
import { artifactReference, foundListing, goodsKinds, listing, listingSorts, listingTerms, newListing } from '../contract/listing.ts'
import { accountId, amount } from '../contract/transfer.ts'
import { newTrial, trialReport } from '../contract/trial.ts'
import * as lists from '../contract/lists.ts'
import { percent } from '../contract/lists.ts'
import { operations } from '../../../contract/operation.ts'
import { paged, pageLimit } from '../../../contract/paging.ts'
import { counted } from '../../../base/amounts.ts'
import { termsText } from './deals.ts'
import { byId, idPath } from '../../../contract/operations/shared.ts'

const operation = operations({ tag: 'Market', roles: ['operator'] })

const cursor = z
  .string()
  .regex(/^-?\d[\d.e+-]{0,30}~.{1,128}$/, 'pass the next_cursor of the previous page')
  .transform((text) => {
    const at = text.indexOf('~')
    return { place: Number(text.slice(0, at)), id: text.slice(at + 1) }
  })

export const search = operation(lists.listings.at, 'searchListings', 'Search listings', {
  description:
    'Open listings with figures that the platform measured: those of the seller are not asked. The ranking gives its reasons with their points. ' +
    'Figures are at most 10 s old up to 200 open listings; `measured_at` says how old. Figures are sums over all scopes, and name none.',
  roles: ['viewer'],
  query: z.object({
    q: z.string().min(1).max(200).optional().describe('Words, all of which are in the id, the description, the event types or the tools.'),
    kind: z.enum(goodsKinds).optional().describe('The goods: a licence, a copy or the ownership.'),
    type: z.string().min(1).max(200).optional().describe('An event type that it handles, as listed or as measured.'),
    tool: z.string().min(1).max(200).optional().describe('A tool that it calls.'),
    artifact: artifactReference.optional().describe('`reflex:ID@VERSION` or `skill:ID@VERSION`.'),
    seller: accountId.optional(),
    max_price: z.coerce.number<string>().int().min(1).optional().describe('In scrip.'),
    sort: z.enum(listingSorts).default('rank').describe('`saved`: by money saved per 1,000 events. `agreement`: by its lower bound.'),
    limit: pageLimit(100, 20),
    cursor: cursor.optional().meta({ type: 'string' }),
  }),
  agent: {
    name: 'genesis_store.search',
    description: 'Searches what is for sale, with figures that the platform measured and the reasons of its rank. Code is not shown.',
    input: z.strictObject({
      q: z.string().min(1).max(100).optional(),
      kind: z.enum(goodsKinds).optional(),
      type: z.string().min(1).max(128).optional().describe('A type of event that it handles.'),
      max_price: z.int().min(0).optional(),
      sort: z.enum(listingSorts).default('rank'),
    }),
  },
  answers: { 200: [paged(foundListing), 'A page.'] },
  command: {
    usage: 'search [words...]',
    help: 'Search open listings, best first',
    flags: [
      ['--kind <kind>', 'of one kind', { choices: goodsKinds }],
      ['--type <type>', 'for an event type'],
      ['--tool <tool>', 'that call a tool'],
      ['--seller <account>', 'of one seller'],
      ['--max-price <scrip>', 'up to a price', { is: 'whole' }],
      ['--sort <order>', 'the order', { choices: listingSorts }],
    ],
    asks: ({ words = [], ...rest }) => {
      const q = [words].flat().join(' ').trim()
      return q === '' ? rest : { ...rest, q }
    },
    table: {
      columns: lists.listings.columns,
      empty: 'No listing matches.',
      most: 100,
      limit: 20,
    },
  },
})

export const tryOut = operation(lists.trial.at, 'tryListing', 'Try listed goods on your own recordings', {
  description:
    'Runs a reflex, or asks the gate of a skill, on what a scope recorded, without acting, and compares it with the decisions made at the time. Shows neither its code nor the arguments of its actions. ' +
    'At most 5 trials an hour and 20 a day for each scope and listing. Its account pays the fee if there is one, which needs the role `operator`.',
  roles: ['viewer'],
  change: true,
  params: idPath,
  body: newTrial,
  example: { scope: 'shop/berlin', since: '2026-11-21T00:00:00Z' },
  answers: { 200: [trialReport, 'The evaluation.'] },
  problems: [404, 409],
  command: {
    ...lists.trial,
    help: 'Evaluate a listed reflex on what your scope recorded, before you pay for it',
    shows: ({ contexts, scope, fires, agreement, missed, would_save, fee, truncated, disagreements, stages }) => [
      `On ${counted(contexts.recorded + contexts.rebuilt, 'event')} of ${scope} it fires ${counted(fires, 'time')}: ` +
        `${agreement.agreed} agree with what was decided, ${agreement.disagreed} differ, ${agreement.not_compared} cannot be compared.`,
      `It leaves ${counted(missed, 'event')} on which an action was taken to others.${truncated ? ' The range was too long: this is its first part.' : ''}`,
      ...(stages ? [`Its gate: ${Array.from(Object.entries(stages), ([stage, events]) => `${stage} ${events}`).join(', ')}.`] : []),
      ...(would_save
        ? [`It would have saved about ${would_save.model_calls.toFixed(1)} model calls and $${would_save.usd.toPrecision(3)}.`]
        : []),
      ...disagreements.map(({ event_id, action_type }) => `  differs on ${event_id}: ${action_type}`),
      ...(fee > 0 ? [`The fee was ${fee}.`] : []),
    ],
  },
})

export const create = operation('post /v1/market/listings', 'createListing', 'List a version for sale', {
  description:
    'Sells a version of a reflex or a skill by its hash: a `licence` to run it in named scopes, a `copy` of its code, or its `ownership`. ' +
    'For the owner of the artifact, operators of the scope whose agent owns it, and admins. A copy of the same content is not sold as new. ' +
    'A licence ends after `days`, or after `fires` in a scope, or when its price, as a budget, is used up at `per_decision`; without any of these it does not end, and its seller has earned it after 30 days.',
  body: newListing,
  agent: {
    name: 'genesis_escrow.list',
    description: 'Lists a version of a reflex or skill that you own for sale: a licence to run it, a copy of its code, or its ownership.',
    input: z.strictObject({ artifact: artifactReference, kind: z.enum(goodsKinds), price: amount, terms: listingTerms.optional() }),
  },
  example: { artifact: 'reflex:greet@1', kind: 'licence', price: 30, seller: 'scope:shop', terms: { days: 30 } },
  answers: { 201: [listing, 'The open listing.'] },
  problems: [404, 409],
  command: {
    usage: 'list <artifact>',
    help: 'Offer a version for sale: reflex:ID@VERSION or skill:ID@VERSION. Its code is hidden from then on',
    flags: [
      ['--kind <kind>', 'licence: to run it; copy: its code; ownership: it changes hands', { choices: goodsKinds, required: true }],
      ['--price <scrip>', 'the price', { is: 'whole', required: true }],
      ['--seller <account>', 'the account that owns it, such as scope:shop/paris', { required: true }],
      ['--days <n>', 'a licence ends after this time', { is: 'whole' }],
      ['--fires <n>', 'a licence ends after this number of actions in a scope', { is: 'whole' }],
      ['--per-decision <scrip>', 'paid per certified decision, out of the price', { is: 'whole' }],
      [
        '--scopes <n>',
        'a licence may name this many scopes, 1 by default; any: patterns, too',
        { is: 'whole_or_any', field: 'most_scopes' },
      ],
      ['--resale', 'the buyer of a copy may sell copies of it'],
      ['--royalty <percent>', 'your share of each resale, at most 50', { is: 'whole', field: 'royalty_percent' }],
      ['--trial-fee <scrip>', 'paid for each trial', { is: 'whole' }],
      ['--expires <time>', 'the listing ends then: an ISO time', { is: 'time', field: 'expires_at' }],
    ],
    asks: ({ artifact, kind, price, seller, expires_at, ...terms }) => ({ artifact, kind, price, seller, terms, expires_at }),
    shows: ({ artifact, listing_id, price }) => [`${artifact} is listed as ${listing_id} for ${price} scrip.`],
  },
})

export const find = operation('get /v1/market/listings/{id}', 'getListing', 'Get a listing', {
  description: 'With the figures that a search shows, measured now.',
  roles: ['viewer'],
  ...byId(foundListing, 'The listing, open or not.'),
  command: {
    usage: 'show <listing>',
    help: 'Show a listing, with its figures and the reasons of its rank',
    shows({ terms, event_types, tools, figures: { agreement, event_types: seen, ...counts }, rank, measured_at, ...rest }) {
      const agrees = agreement && `at least ${percent(agreement.lower_bound)}, ${agreement.state} over ${agreement.compared}`
      return [
        { ...rest, event_types: event_types.join(', '), tools: tools.join(', '), terms: termsText(terms) },
        { ...counts, agreement: agrees, measured_types: seen.join(', ') },
        `${rank.score} points, measured at ${measured_at}:`,
        ...rank.because.map(({ points, reason }) => `  ${String(points).padStart(5)}  ${reason}`),
      ]
    },
  },
})

export const close = operation('delete /v1/market/listings/{id}', 'closeListing', 'Close a listing', {
  description: 'Open offers on it are rejected, and their money returns. Licences that were sold stay.',
  ...byId(listing, 'The closed listing.'),
  agent: {
    name: 'genesis_escrow.unlist',
    description: 'Withdraws a listing of yours. Its open offers end, and their money returns.',
    input: z.strictObject({ listing_id: idPath.shape.id }),
  },
  problems: [404, 409],
  command: {
    usage: 'unlist <listing>',
    help: 'End a listing; licences that were sold stay',
    shows: (_, [id]) => [`${id} is no longer listed.`],
    done: 'unlisted',
  },
})
