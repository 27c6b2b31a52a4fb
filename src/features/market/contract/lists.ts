import type { Colour, CommandForm, ItemList } from '../../../contract/shown.ts'
import type { Account } from './account.ts'
import type { Deal, DealState } from './deal.ts'
import type { FoundListing } from './listing.ts'
import type { Contract } from './service.ts'
import type { Transfer } from './transfer.ts'

/** The pages of the dashboard. */
const page = (kind: string, id: string): string => `/market?${kind}=${encodeURIComponent(id)}`

const dealColours: Partial<Record<DealState, Colour>> = { offered: 'yellow', accepted: 'green', settled: 'green', rejected: 'red' }
export const percent = (share: number): string => `${Math.floor(share * 1000) / 10} %`

export const listings = {
  at: 'get /v1/market/listings',
  key: 'listing_id',
  columns: [
    { title: 'Listing', of: ({ listing_id }) => listing_id, only: 'terminal' },
    { title: 'Price', of: ({ price }) => price, kind: 'scrip' },
    { title: 'Kind', of: ({ kind }) => kind, width: 6 },
    { title: 'Points', of: ({ rank }) => rank.score, kind: 'count' },
    {
      title: 'Agrees',
      of: ({ figures: { agreement } }) => agreement && `>= ${percent(agreement.lower_bound)} ${agreement.state}`,
    },
    { title: 'Fires', of: ({ figures }) => figures.fires, kind: 'count' },
    { title: 'Saves/1000', of: ({ figures: { usd_saved_per_1000: usd } }) => usd && `$${usd.toPrecision(3)}`, width: 8 },
    { title: 'Artifact', of: ({ artifact }) => artifact, to: ({ listing_id }) => page('listing', listing_id) },
    { title: 'Description', of: ({ description }) => description },
  ],
} as const satisfies ItemList<FoundListing>

export const deals = {
  at: 'get /v1/market/deals',
  key: 'deal_id',
  columns: [
    { title: 'Deal', of: ({ deal_id }) => deal_id, only: 'terminal' },
    { title: 'Status', of: ({ status }) => status, kind: 'status', colour: ({ status }) => dealColours[status] ?? null },
    { title: 'Price', of: ({ price }) => price, kind: 'scrip' },
    { title: 'Paid', of: ({ paid }) => paid, kind: 'scrip' },
    { title: 'Kind', of: ({ kind }) => kind, width: 6 },
    { title: 'Artifact', of: ({ artifact }) => artifact, to: ({ deal_id }) => page('deal', deal_id) },
    { title: 'Seller', of: ({ seller }) => seller, kind: 'account' },
    { title: 'Buyer', of: ({ buyer }) => buyer, kind: 'account' },
    { title: 'Offered', of: ({ offered_at }) => offered_at, kind: 'time', only: 'page' },
  ],
} as const satisfies ItemList<Deal>

export const contracts = {
  at: 'get /v1/market/contracts',
  key: 'contract_id',
  columns: [
    { title: 'Contract', of: ({ contract_id }) => contract_id, only: 'terminal' },
    { title: 'Status', of: ({ status }) => status, kind: 'status' },
    { title: 'Service', of: ({ service }) => service, to: ({ contract_id }) => page('contract', contract_id) },
    { title: 'Price', of: ({ price_per_invocation }) => price_per_invocation, kind: 'scrip' },
    { title: 'Calls', of: ({ invocations, limit }) => `${invocations} of ${limit}`, width: 9 },
    { title: 'Proposer', of: ({ proposer }) => proposer, kind: 'account' },
    { title: 'Counterparty', of: ({ counterparty }) => counterparty, kind: 'account' },
  ],
} as const satisfies ItemList<Contract>

export const accounts = {
  at: 'get /v1/ledger/accounts',
  key: 'id',
  columns: [
    { title: 'Balance', of: ({ balance }) => balance, kind: 'scrip' },
    { title: 'Available', of: ({ available }) => available, kind: 'scrip' },
    { title: 'Account', of: ({ id, closed }) => (closed ? `${id} (closed)` : id), to: ({ id }) => page('account', id) },
  ],
} as const satisfies ItemList<Account>

export const statement = {
  at: 'get /v1/ledger/accounts/{id}/statement',
  key: 'seq',
  columns: [
    { title: 'At', of: ({ at }) => at, kind: 'time' },
    { title: 'Amount', of: ({ amount }) => amount, kind: 'scrip' },
    { title: 'Kind', of: ({ kind }) => kind, width: 6 },
    { title: 'From', of: ({ debit }) => debit, kind: 'account' },
    { title: 'To', of: ({ credit }) => credit, kind: 'account' },
    { title: 'Id', of: ({ id }) => id },
    { title: 'Memo', of: ({ memo }) => memo },
  ],
} as const satisfies ItemList<Transfer>

export const offer = {
  at: 'post /v1/market/listings/{id}/offers',
  usage: 'offer <listing>',
  flags: [
    ['--buyer <account>', 'the account that pays, such as scope:shop/berlin', { required: true }],
    ['--price <scrip>', 'another price than that of the listing', { is: 'whole' }],
    ['--scope <scope...>', 'the scopes of a licence; the scope of the buyer by default', { field: 'scopes' }],
    ['--timeout <seconds>', 'the offer expires after this time; a day by default', { is: 'whole', field: 'timeout_s' }],
    ['--id <id>', 'your id of the offer: repeating it makes no second one'],
  ],
  fills: 'id',
} as const satisfies CommandForm

export const trial = {
  at: 'post /v1/market/listings/{id}/try',
  usage: 'try <listing>',
  flags: [
    ['--scope <scope>', 'the scope, whose account pays the fee if there is one', { required: true }],
    ['--since <time>', 'on the events since then: 10m ago, or an ISO time', { is: 'instant', required: true }],
    ['--id <id>', 'your id of the trial: repeating it pays no second fee'],
  ],
} as const satisfies CommandForm

export const proposal = {
  at: 'post /v1/market/contracts',
  usage: 'propose <service>',
  flags: [
    ['--proposer <account>', 'the account that pays', { required: true }],
    ['--counterparty <account>', 'the account of the scope that is called', { required: true }],
    ['--price <scrip>', 'the price of a call', { is: 'whole', required: true, field: 'price_per_invocation' }],
    ['--limit <n>', 'the largest number of calls', { is: 'whole', required: true }],
    ['--id <id>', 'your id of the contract: repeating it proposes no second one'],
  ],
  fills: 'id',
} as const satisfies CommandForm
