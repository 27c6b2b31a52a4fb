import * as lists from '../contract/lists.ts'
import { operations, type CommandOf, type Resource } from '../../../contract/operation.ts'
import { paged } from '../../../contract/paging.ts'
import { contract, contractReason, newContract, type Contract } from '../contract/service.ts'
import { counted } from '../../../base/amounts.ts'
import { accountQuery, byId, decidedById, idPath, reasonFlag } from '../../../contract/operations/shared.ts'

const operation = operations({ tag: 'Market', roles: ['operator'] })

const shows: CommandOf<Contract>['shows'] = ({ disputes, ...found }) => {
  const { contract_id, status, service, proposer, counterparty, price_per_invocation, limit, invocations, paid, reason } = found
  return [
    { contract_id, status, service, proposer, counterparty, price_per_invocation, calls: `${invocations} of ${limit}`, paid, reason },
    ...disputes.map(({ at, by, reason: why, traces }) => `  ${at}  disputed by ${by}: ${why} (${counted(traces.length, 'trace')})`),
  ]
}

export const propose = operation(lists.proposal.at, 'proposeContract', 'Propose a contract', {
  description:
    'The proposer pays the counterparty for each call of its skill or reflex, up to a number of calls. The same contract again changes nothing. ' +
    'For operators of the scope that pays.',
  body: newContract,
  agent: {
    name: 'genesis_contracts.propose',
    description: 'Proposes to pay another scope for each call of a skill or reflex of it.',
    input: newContract.omit({ id: true, proposer: true }),
  },
  example: {
    id: 'contract-1',
    proposer: 'scope:shop',
    counterparty: 'scope:cook',
    service: 'reflex:menu',
    price_per_invocation: 2,
    limit: 100,
  },
  answers: { 200: [contract, 'The contract, which existed already.'], 201: [contract, 'The contract, as proposed.'] },
  problems: [404, 409],
  command: {
    ...lists.proposal,
    help: 'Propose a contract on skill:ID or reflex:ID of another scope',
    shows,
  },
})

export const list = operation(lists.contracts.at, 'listContracts', 'List the contracts of an account, oldest first', {
  roles: ['viewer'],
  query: accountQuery,
  answers: { 200: [paged(contract), 'A page.'] },
  command: {
    usage: 'list',
    flags: [['--account <account>', 'such as scope:shop/berlin', { required: true }]],
    table: {
      columns: lists.contracts.columns,
      empty: 'The account has no contracts.',
      most: 100,
      limit: 20,
    },
  },
})

export const find = operation('get /v1/market/contracts/{id}', 'getContract', 'Get a contract', {
  description: 'For those who may read the account of one of its sides.',
  roles: ['viewer'],
  ...byId(contract, 'The contract with its disputes.'),
  command: { usage: 'show <id>', help: 'Show a contract', shows },
})

const toDecide = contractReason.extend({ contract_id: idPath.shape.id })
type Words = readonly [summary: string, description: string, help: string, of_tool: string]

const decision = <const Verb extends string>(verb: Verb, [summary, description, help, of_tool]: Words) =>
  operation(`post /v1/market/contracts/{id}/${verb}`, `${verb}Contract`, summary, {
    description,
    ...decidedById(contract, 'The contract.', contractReason),
    agent: { name: `genesis_contracts.${verb}`, description: of_tool, input: toDecide },
    takes: 'optional',
    example: { reason: 'The service answered wrongly.' },
    command: {
      usage: `${verb} <id>`,
      help,
      flags: [
        reasonFlag(),
        ...(verb === 'dispute'
          ? [['--trace <id...>', 'traces that show the fault, beside those of the latest calls', { field: 'traces' }] as const]
          : []),
      ],
      shows,
    },
  })

export const accept = decision('accept', [
  'Accept a contract',
  'For the counterparty. The proposer may call from now on.',
  'Accept a contract, as the counterparty',
  'Accepts a contract that another scope proposes to you.',
])
export const reject = decision('reject', [
  'Reject a contract',
  'For the counterparty.',
  'Reject a contract, as the counterparty',
  'Rejects a contract that another scope proposes to you.',
])
export const end = decision('end', [
  'End a contract',
  'For both sides. A call that has begun is still settled.',
  'End a contract, as either side',
  'Ends a contract of yours: there are no further calls.',
])
export const dispute = decision('dispute', [
  'Dispute a contract',
  'For both sides. There are no further calls; the dispute has the traces that you name, and those of the latest calls, for a person to judge. No money moves.',
  'Dispute a contract, as either side: there are no further calls',
  'Disputes a contract. A person gets the traces of both sides; the calls end.',
])

export const contracts: Resource = {
  noun: 'contract',
  help: 'Contracts: pay another scope for each call of its skill or reflex',
  verbs: [propose, list, find, accept, reject, end, dispute],
}
