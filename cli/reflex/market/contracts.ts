import { randomUUID } from 'node:crypto'
import { Option, type Command } from 'commander'
import type { Contract } from '../../../src/contract/market/service.ts'
import { route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { fields, written } from '../table.ts'
import { wholeNumber } from '../values.ts'
import { given } from './given.ts'

type Terms = { proposer: string; counterparty: string; price: number; limit: number; id?: string }

export function addContracts(market: Command): void {
  const contracts = market.command('contract').description('Contracts: pay another scope for each call of its skill or reflex')
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
  ] as const) {
    contracts
      .command(`${verb} <id>`)
      .description(description)
      .option('--reason <text>', 'why, for the record')
      .action(
        handler(async ({ api, print, signal }, id: string, { reason }: { reason?: string }) => {
          const body = given({ reason })
          shown(print, await api().json<Contract>(route(['market', 'contracts', id, verb]), { method: 'POST', body, signal }))
        }),
      )
  }
}

function shown(print: Session['print'], { disputes, ...contract }: Contract): void {
  print.result({ ...contract, disputes }, (paint) => [
    ...fields(contract, paint),
    ...disputes.map(({ at, by, reason }) => `  ${at}  disputed by ${written(by)}: ${written(reason)}`),
  ])
}
