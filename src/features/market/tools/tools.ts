import { type ToolDefinition, defineTool, type ToolCall } from '../../../tools/define-tool.ts'
import { MarketAccount, type DeskParts, made } from './desk.ts'
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

type Executing<Input> = Omit<ToolDefinition<Input>, 'description' | 'input'>

/** The tool that an operation declares, with what it does for the account of the scope. */
function agentTool<Input>({ agent }: { agent?: AgentTool<Input> | undefined }, executing: Executing<Input>) {
  if (!agent) throw new Error('the operation declares no tool of agents')
  const { name, description, input } = agent
  return { [name]: defineTool<Input>({ description, input, ...executing }) }
}

/** The methods of `genesis_store`; `update_agent_config` is the tool of that name. */
const storeTools = (desk: MarketAccount) => ({
  ...agentTool(listings.search, {
    repeatable: true,
    async execute(query, { now }) {
      const db = storeOf(desk.env)
      await measureListings(db, now())
      const { items } = await searchListings(db, { ...query, limit: MOST_FOUND, now: now() })
      return { listings: items }
    },
  }),
})

/** The methods of `genesis_ledger`. */
const ledgerTools = (desk: MarketAccount) => ({
  ...agentTool(ledger.find, {
    repeatable: true,
    async execute() {
      const { balance = 0, available = 0 } = (await desk.ledger.account(desk.account)) ?? {}
      return { account: desk.account, balance, available }
    },
  }),
  ...agentTool(ledger.send, {
    keyed_by_call: true,
    async execute({ to: asked, amount: sum, memo }, call) {
      const input = { to: asked, amount: sum, ...(memo !== undefined && { memo }) }
      const { account: to, by } = await desk.payee(asked)
      await desk.demandAllowance({ tool: 'genesis_ledger.transfer', input, to, amount: sum }, call)
      const id = desk.idOf(call)
      const transfer = { id, debit: desk.account, credit: to, amount: sum, code: 'agent', ...(memo !== undefined && { memo }) }
      const [result] = await desk.ledger.transfer([transfer], by)
      if (!result || result.status === 'failed') throw new Error(`nothing was paid: ${result?.reason ?? 'no answer'}`)
      return { paid: sum, to, transfer: id }
    },
  }),
})

/** The methods of `genesis_escrow`. Decisions have the deal as their key. */
const escrowTools = (desk: MarketAccount) => ({ ...selling(desk), ...buying(desk) })

function selling(desk: MarketAccount) {
  return {
    ...agentTool(listings.create, {
      keyed_by_call: true,
      async execute({ terms, ...asked }, call) {
        const found = await findGoods(storeOf(desk.env), asked.artifact)
        if (!found || found.owner.owner_id !== desk.account) throw new Error(`you own no version ${asked.artifact}`)
        const input = { ...asked, ...(terms && { terms }) }
        const gives = `${asked.kind} of ${asked.artifact}`
        const sale = { tool: 'genesis_escrow.list', input, to: 'any buyer', amount: asked.price, gives }
        await desk.demandConsent(sale, artifactOf(asked.artifact), call)
        const listing = { ...asked, seller: desk.account, listing_id: desk.idOf(call), ...(terms && { terms }) }
        return made(await sell(desk.env, listing, found, await desk.caller())).listing
      },
    }),
    ...agentTool(listings.close, {
      idempotence_key: ({ listing_id }) => `unlist:${listing_id}`,
      async execute({ listing_id }) {
        const listing = await desk.ledger.listing(listing_id)
        if (listing?.seller !== desk.account) throw new Error(`you have no listing ${listing_id}`)
        return made(await desk.ledger.unlist(listing_id, { reason: 'its seller withdrew it' })).listing
      },
    }),
    ...agentTool(deals.accept, {
      idempotence_key: (input) => `accept:${input.deal_id}`,
      async execute(input, call) {
        const deal = await desk.ledger.deal(input.deal_id)
        if (deal?.seller !== desk.account) throw new Error(`no deal ${input.deal_id} waits for your answer`)
        if (deal.status === 'offered') {
          const { artifact, kind, buyer: to, price } = deal
          const sale = { tool: 'genesis_escrow.accept', input, to, amount: price, gives: `${kind} of ${artifact}` }
          await desk.demandConsent(sale, artifactOf(artifact), call)
        }
        const goods_state = await stateOfGoods(storeOf(desk.env), deal.artifact)
        return made(await desk.ledger.decide(input.deal_id, 'accept', { account: desk.account, goods_state })).deal
      },
    }),
    ...agentTool(deals.reject, {
      idempotence_key: (input) => `reject:${input.deal_id}`,
      execute: async (input) =>
        made(await desk.ledger.decide(input.deal_id, 'reject', { account: desk.account, reason: input.reason })).deal,
    }),
  }
}

function buying(desk: MarketAccount) {
  return {
    ...agentTool(deals.offer, {
      keyed_by_call: true,
      async execute({ listing_id, price }, call) {
        const listing = await desk.ledger.listing(listing_id)
        if (!listing) throw new Error(`there is no listing ${listing_id}`)
        const pays = price ?? listing.price
        const input = { listing_id, price: pays }
        await desk.demandAllowance({ tool: 'genesis_escrow.offer', input, to: listing.seller, amount: pays }, call)
        const seller = scopeOfOwner(listing.seller)
        const by = await desk.caller(seller === null ? undefined : agentOwner(seller))
        const asked = { id: desk.idOf(call), buyer: desk.account, ...(price !== undefined && { price }) }
        return made(await desk.ledger.offer(listing_id, asked, by)).deal
      },
    }),
    ...agentTool(deals.cancel, {
      idempotence_key: (input) => `cancel:${input.deal_id}`,
      execute: async (input) =>
        made(await desk.ledger.decide(input.deal_id, 'cancel', { account: desk.account, reason: input.reason })).deal,
    }),
  }
}

/** The methods of `genesis_contracts`. */
const contractTools = (desk: MarketAccount) => ({
  ...agentTool(contracts.propose, {
    keyed_by_call: true,
    async execute(asked, call) {
      const amount = asked.price_per_invocation * asked.limit
      await desk.demandAllowance({ tool: 'genesis_contracts.propose', input: asked, to: asked.counterparty, amount }, call)
      const id = desk.idOf(call)
      return made(await desk.ledger.propose({ ...asked, id, proposer: desk.account }, await desk.caller(asked.counterparty))).contract
    },
  }),
  ...deciding(desk, { verb: 'accept', op: contracts.accept }, async ({ contract_id: id, ...rest }, call) => {
    const contract = await desk.ledger.contract(id)
    if (contract?.counterparty !== desk.account || contract.status !== 'proposed') return
    const { proposer: to, service, price_per_invocation: amount, limit } = contract
    const gives = `${limit} calls of ${service}, for this price each`
    const input = { contract_id: id, ...rest }
    await desk.demandConsent({ tool: 'genesis_contracts.accept', input, to, amount, gives }, service, call)
  }),
  ...deciding(desk, { verb: 'reject', op: contracts.reject }),
  ...deciding(desk, { verb: 'end', op: contracts.end }),
  ...deciding(desk, { verb: 'dispute', op: contracts.dispute }),
  'genesis_contracts.invoke': defineTool({
    keyed_by_call: true,
    description: 'Calls the skill or reflex of a contract in force. It is paid for if it is served.',
    input: z.strictObject({ service: z.string().min(1).max(200), input: z.record(z.string(), z.unknown()).default({}) }),
    execute: ({ service, input }, call) =>
      invoke(desk, {
        service,
        input,
        invocation_id: desk.idOf(call),
        trace: call.trace && { trace_id: call.trace.trace_id, parent_id: call.trace.span_id },
      }),
  }),
})

type ContractTool = { verb: 'accept' | 'reject' | 'end' | 'dispute'; op: Pick<typeof contracts.accept, 'agent'> }
type Deciding = z.infer<NonNullable<typeof contracts.accept.agent>['input']>
type Demand = (input: Deciding, call: ToolCall) => Promise<void>

/** `demand` throws if the decision needs a person. */
const deciding = (desk: MarketAccount, { verb, op }: ContractTool, demand?: Demand) =>
  agentTool(op, {
    idempotence_key: (input) => `${verb}:${input.contract_id}`,
    async execute(input, call) {
      await demand?.(input, call)
      const by = { account: desk.account, reason: input.reason, traces: input.traces }
      return made(await desk.ledger.decideContract(input.contract_id, verb, by)).contract
    },
  })

type Invoked = { service: string; input: Record<string, unknown>; invocation_id: string; trace: ServiceCall['trace'] }

/** Reserves the price, has the provider serve the call, and pays if it did. */
async function invoke(desk: MarketAccount, { service, input, invocation_id, trace }: Invoked): Promise<unknown> {
  const found = desk.view.contracts.find((one) => one.role === 'caller' && [one.service, idOf(one.service)].includes(service))
  const provider = found && scopeOfOwner(found.other)
  if (!found || provider == null) throw new Error(`no contract in force lets this scope call ${service}`)
  const { contract_id: id } = found
  made(await desk.ledger.payInvocation(id, { caller: desk.account, invocation_id }))
  const call = { contract_id: id, invocation_id, caller: desk.account, service: found.service, input, trace }
  const served = JSON.parse(await desk.env.SCOPE.getByName(provider).serve(call)) as Served
  const settled = await desk.ledger.settleInvocation(id, { invocation_id, served: served.ok, trace_id: served.trace_id })
  if (!served.ok) throw new Error(`${served.detail}; nothing was paid`)
  made(settled)
  return { output: served.output, contract_id: id, trace_id: served.trace_id }
}

const idOf = (service: string): string => service.slice(service.indexOf(':') + 1)

/** The tools of the market, for models and for reflexes by `invoke_artifact`. */
export function marketTools(parts: DeskParts): Readonly<Record<string, ToolDefinition>> {
  const desk = new MarketAccount(parts)
  return { ...ledgerTools(desk), ...storeTools(desk), ...escrowTools(desk), ...contractTools(desk) }
}
