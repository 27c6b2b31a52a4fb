import { randomUUID } from 'node:crypto'
import { Option, type Command } from 'commander'
import type { Contract } from '../../../src/contract/market/service.ts'
import { counted } from '../../lib/text.ts'
import { pages, route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { fields, written, type Column } from '../table.ts'
import { limitOption, wholeNumber } from '../values.ts'
import { given } from './given.ts'

type Terms = { proposer: string; counterparty: string; price: number; limit: number; id?: string }

const columns: Column<Contract>[] = [
  { title: 'CONTRACT', of: ({ contract_id }) => contract_id },
  { title: 'STATUS', of: ({ status }) => status },
  { title: 'SERVICE', of: ({ service }) => service },
  { title: 'PRICE', of: ({ price_per_invocation }) => price_per_invocation },
  { title: 'CALLS', of: ({ invocations, limit }) => `${invocations} of ${limit}` },
  { title: 'PROPOSER', of: ({ proposer }) => proposer },
  { title: 'COUNTERPARTY', of: ({ counterparty }) => counterparty },
]

export function addContracts(market: Command): void {
  const contracts = market
    .command('contract')
    .description('Contracts: pay another scope for each call of its skill or reflex')
    .helpCommand(false)
  contracts
    .command('propose <service>')
    .description('Propose a contract on skill:ID or reflex:ID of another scope')
    .requiredOption('--proposer <account>', 'the account that pays')
    .requiredOption('--counterparty <account>', 'the account of the scope that is called')
    .addOption(new Option('--price <scrip>', 'the price of a call').argParser(wholeNumber).makeOptionMandatory())
    .addOption(new Option('--limit <n>', 'the largest number of calls').argParser(wholeNumber).makeOptionMandatory())
    .option('--id <id>', 'your id of the contract: repeating it proposes no second one')
    .action(
      handler(async ({ api, print, signal }, service: string, { proposer, counterparty, price, limit, id }: Terms) => {
        const body = { id: id ?? randomUUID(), proposer, counterparty, service, price_per_invocation: price, limit }
        shown(print, await api().json<Contract>(route(['market', 'contracts']), { method: 'POST', body, signal }))
      }),
    )
  contracts
    .command('list')
    .description('List the contracts of an account, oldest first')
    .requiredOption('--account <account>', 'such as scope:shop/berlin')
    .addOption(limitOption(20))
    .action(
      handler(async ({ api, print, signal }, { account, limit }: { account: string; limit: number }) => {
        const found = await pages<Contract>(api(), { parts: ['market', 'contracts'], query: { account }, limit, most: 100, signal })
        print.page(found, columns, 'The account has no contracts.')
      }),
    )
  contracts
    .command('show <id>')
    .description('Show a contract')
    .action(
      handler(async ({ api, print, signal }, id: string) =>
        shown(print, await api().json<Contract>(route(['market', 'contracts', id]), { signal })),
      ),
    )
  for (const [verb, description] of [
    ['accept', 'Accept a contract, as the counterparty'],
    ['reject', 'Reject a contract, as the counterparty'],
    ['end', 'End a contract, as either side'],
    ['dispute', 'Dispute a contract, as either side: there are no further calls'],
  ] as const) {
    const command = contracts.command(`${verb} <id>`).description(description).option('--reason <text>', 'why, for the record')
    if (verb === 'dispute') command.option('--trace <id...>', 'traces that show the fault, beside those of the latest calls')
    command.action(
      handler(async ({ api, print, signal }, id: string, { reason, trace: traces }: { reason?: string; trace?: string[] }) => {
        const body = given({ reason, traces })
        shown(print, await api().json<Contract>(route(['market', 'contracts', id, verb]), { method: 'POST', body, signal }))
      }),
    )
  }
}

function shown(print: Session['print'], contract: Contract): void {
  const { contract_id, status, service, proposer, counterparty, price_per_invocation, limit, invocations, paid, reason, disputes } =
    contract
  const calls = `${invocations} of ${limit}`
  print.result(contract, (paint) => [
    ...fields({ contract_id, status, service, proposer, counterparty, price_per_invocation, calls, paid, reason }, paint),
    ...disputes.map(
      ({ at, by, reason: why, traces }) => `  ${at}  disputed by ${written(by)}: ${written(why)} (${counted(traces.length, 'trace')})`,
    ),
  ])
}
