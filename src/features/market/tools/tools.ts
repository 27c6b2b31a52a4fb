import { type ToolDefinition, defineTool, type ToolCall } from '../../../tools/define-tool.ts'
import { Trader, type TraderParts, made } from './trader.ts'
import { z } from 'zod'
import type { Served, ServiceCall } from '../contract/view.ts'
import { scopeOfOwner, agentOwner } from '../../../contract/reflex.ts'
import type { AgentTool } from '../../../contract/operation.ts'
import * as contracts from '../operations/contracts.ts'
import * as deals from '../operations/deals.ts'
import * as ledger from '../operations/ledger.ts'
import * as listings from '../operations/listings.ts'
import { storeOf } from '../../../store/store.ts'
import { findGoods, stateOfGoods } from '../goods.ts'
import { sell } from '../goods/sell.ts'
import { artifactOf } from '../deals/records.ts'
import { searchListings } from '../store/listings.ts'
import { measureListings } from '../discovery/measure.ts'

const MOST_FOUND = 20
const invocation = z.strictObject({ service: z.string().min(1).max(200), input: z.record(z.string(), z.unknown()).default({}) })

type Executing<Input> = Omit<ToolDefinition<Input>, 'description' | 'input'>

/** The tool that an operation declares, with what it does for the account of the scope. */
function agentTool<Input>({ agent }: { agent?: AgentTool<Input> | undefined }, executing: Executing<Input>) {
  if (!agent) throw new Error('the operation declares no tool of agents')
  const { name, description, input } = agent
  return { [name]: defineTool({ description, input, ...executing }) }
}

/** The methods of `genesis_store`; `update_agent_config` is the tool of that name. */
const storeTools = (trader: Trader) => ({
  ...agentTool(listings.search, {
    repeatable: true,
    async execute(query, { now }) {
      const db = storeOf(trader.env)
      await measureListings(db, now())
      const { items } = await searchListings(db, { ...query, limit: MOST_FOUND, now: now() })
      return { listings: items }
    },
  }),
})

/** The methods of `genesis_ledger`. */
const ledgerTools = (trader: Trader) => ({
  ...agentTool(ledger.find, {
    repeatable: true,
    async execute() {
      const { balance = 0, available = 0 } = (await trader.ledger.account(trader.account)) ?? {}
      return { account: trader.account, balance, available }
    },
  }),
  ...agentTool(ledger.send, {
    keyed_by_call: true,
    async execute({ to: asked, amount: sum, memo }, call) {
      const input = { to: asked, amount: sum, ...(memo !== undefined && { memo }) }
      const { account: to, by } = await trader.payee(asked)
      await trader.demandAllowance({ tool: 'genesis_ledger.transfer', input, to, amount: sum }, call)
      const id = trader.idOf(call)
      const transfer = { id, debit: trader.account, credit: to, amount: sum, code: 'agent', ...(memo !== undefined && { memo }) }
      const [result] = await trader.ledger.transfer([transfer], by)
      if (!result || result.status === 'failed') throw new Error(`nothing was paid: ${result?.reason ?? 'no answer'}`)
      return { paid: sum, to, transfer: id }
    },
  }),
})

/** The methods of `genesis_escrow`. Decisions have the deal as their key. */
const escrowTools = (trader: Trader) => ({ ...selling(trader), ...buying(trader) })

function selling(trader: Trader) {
  return {
    ...agentTool(listings.create, {
      keyed_by_call: true,
      async execute({ terms, ...asked }, call) {
        const found = await findGoods(storeOf(trader.env), asked.artifact)
        if (!found || found.owner.owner_id !== trader.account) throw new Error(`you own no version ${asked.artifact}`)
        const input = { ...asked, ...(terms && { terms }) }
        const gives = `${asked.kind} of ${asked.artifact}`
        const sale = { tool: 'genesis_escrow.list', input, to: 'any buyer', amount: asked.price, gives }
        await trader.demandConsent(sale, artifactOf(asked.artifact), call)
        const listing = { ...asked, seller: trader.account, listing_id: trader.idOf(call), ...(terms && { terms }) }
        return made(await sell(trader.env, listing, found, await trader.caller())).listing
      },
    }),
    ...agentTool(listings.close, {
      idempotence_key: ({ listing_id }) => `unlist:${listing_id}`,
      async execute({ listing_id }) {
        const listing = await trader.ledger.listing(listing_id)
        if (listing?.seller !== trader.account) throw new Error(`you have no listing ${listing_id}`)
        return made(await trader.ledger.unlist(listing_id, { reason: 'its seller withdrew it' })).listing
      },
    }),
    ...agentTool(deals.accept, {
      idempotence_key: (input) => `accept:${input.deal_id}`,
      async execute(input, call) {
        const deal = await trader.ledger.deal(input.deal_id)
        if (deal?.seller !== trader.account) throw new Error(`no deal ${input.deal_id} waits for your answer`)
        if (deal.status === 'offered') {
          const { artifact, kind, buyer: to, price } = deal
          const sale = { tool: 'genesis_escrow.accept', input, to, amount: price, gives: `${kind} of ${artifact}` }
          await trader.demandConsent(sale, artifactOf(artifact), call)
        }
        const goods_state = await stateOfGoods(storeOf(trader.env), deal.artifact)
        return made(await trader.ledger.decide(input.deal_id, 'accept', { account: trader.account, goods_state })).deal
      },
    }),
    ...agentTool(deals.reject, {
      idempotence_key: (input) => `reject:${input.deal_id}`,
      execute: async (input) =>
        made(await trader.ledger.decide(input.deal_id, 'reject', { account: trader.account, reason: input.reason })).deal,
    }),
  }
}

function buying(trader: Trader) {
  return {
    ...agentTool(deals.offer, {
      keyed_by_call: true,
      async execute({ listing_id, price }, call) {
        const listing = await trader.ledger.listing(listing_id)
        if (!listing) throw new Error(`there is no listing ${listing_id}`)
        const pays = price ?? listing.price
        const input = { listing_id, price: pays }
        await trader.demandAllowance({ tool: 'genesis_escrow.offer', input, to: listing.seller, amount: pays }, call)
        const seller = scopeOfOwner(listing.seller)
        const by = await trader.caller(seller === null ? undefined : agentOwner(seller))
        const asked = { id: trader.idOf(call), buyer: trader.account, ...(price !== undefined && { price }) }
        return made(await trader.ledger.offer(listing_id, asked, by)).deal
      },
    }),
    ...agentTool(deals.cancel, {
      idempotence_key: (input) => `cancel:${input.deal_id}`,
      execute: async (input) =>
        made(await trader.ledger.decide(input.deal_id, 'cancel', { account: trader.account, reason: input.reason })).deal,
    }),
  }
}

/** The methods of `genesis_contracts`. */
const contractTools = (trader: Trader) => ({
  ...agentTool(contracts.propose, {
    keyed_by_call: true,
    async execute(asked, call) {
      const amount = asked.price_per_invocation * asked.limit
      await trader.demandAllowance({ tool: 'genesis_contracts.propose', input: asked, to: asked.counterparty, amount }, call)
      const id = trader.idOf(call)
      return made(await trader.ledger.propose({ ...asked, id, proposer: trader.account }, await trader.caller(asked.counterparty))).contract
    },
  }),
  ...deciding(trader, { verb: 'accept', op: contracts.accept }, async ({ contract_id: id, ...rest }, call) => {
    const contract = await trader.ledger.contract(id)
    if (contract?.counterparty !== trader.account || contract.status !== 'proposed') return
    const { proposer: to, service, price_per_invocation: amount, limit } = contract
    const gives = `${limit} calls of ${service}, for this price each`
    const input = { contract_id: id, ...rest }
    await trader.demandConsent({ tool: 'genesis_contracts.accept', input, to, amount, gives }, service, call)
  }),
  ...deciding(trader, { verb: 'reject', op: contracts.reject }),
  ...deciding(trader, { verb: 'end', op: contracts.end }),
  ...deciding(trader, { verb: 'dispute', op: contracts.dispute }),
  'genesis_contracts.invoke': defineTool({
    keyed_by_call: true,
    description: 'Calls the skill or reflex of a contract in force. It is paid for if it is served.',
    input: invocation,
    execute: ({ service, input }, call) =>
      invoke(trader, {
        service,
        input,
        invocation_id: trader.idOf(call),
        trace: call.trace && { trace_id: call.trace.trace_id, parent_id: call.trace.span_id },
      }),
  }),
})

type ContractTool = { verb: 'accept' | 'reject' | 'end' | 'dispute'; op: Pick<typeof contracts.accept, 'agent'> }
type Deciding = z.infer<NonNullable<typeof contracts.accept.agent>['input']>
type Demand = (input: Deciding, call: ToolCall) => Promise<void>

/** `demand` throws if the decision needs a person. */
const deciding = (trader: Trader, { verb, op }: ContractTool, demand?: Demand) =>
  agentTool(op, {
    idempotence_key: (input) => `${verb}:${input.contract_id}`,
    async execute(input, call) {
      await demand?.(input, call)
      const by = { account: trader.account, reason: input.reason, traces: input.traces }
      return made(await trader.ledger.decideContract(input.contract_id, verb, by)).contract
    },
  })

type Invoked = { service: string; input: Record<string, unknown>; invocation_id: string; trace: ServiceCall['trace'] }

/** Reserves the price, has the provider serve the call, and pays if it did. */
async function invoke(trader: Trader, { service, input, invocation_id, trace }: Invoked): Promise<unknown> {
  const found = trader.view.contracts.find((one) => one.role === 'caller' && [one.service, idOf(one.service)].includes(service))
  const provider = found && scopeOfOwner(found.other)
  if (!found || provider == null) throw new Error(`no contract in force lets this scope call ${service}`)
  const { contract_id: id } = found
  made(await trader.ledger.payInvocation(id, { caller: trader.account, invocation_id }))
  const call = { contract_id: id, invocation_id, caller: trader.account, service: found.service, input, trace }
  const served = JSON.parse(await trader.env.SCOPE.getByName(provider).serve(call)) as Served
  const settled = await trader.ledger.settleInvocation(id, { invocation_id, served: served.ok, trace_id: served.trace_id })
  if (!served.ok) throw new Error(`${served.detail}; nothing was paid`)
  made(settled)
  return { output: served.output, contract_id: id, trace_id: served.trace_id }
}

const idOf = (service: string): string => service.slice(service.indexOf(':') + 1)

/** The tools of the market, for models and for reflexes by `invoke_artifact`. */
export function marketTools(parts: TraderParts): Readonly<Record<string, ToolDefinition>> {
  const trader = new Trader(parts)
  return { ...ledgerTools(trader), ...storeTools(trader), ...escrowTools(trader), ...contractTools(trader) }
}
