import { type ToolDefinition, defineTool, type ToolCall } from '../../../tools/define-tool.ts'
import { Desk, type DeskParts, made } from './desk.ts'
import { z } from 'zod'
import { contractReason, newContract } from '../contract/service.ts'
import type { Served, ServiceCall } from '../contract/view.ts'
import { scopeOfOwner, agentOwner } from '../../../contract/reflex.ts'
import { artifactReference, goodsKinds, listingSorts, listingTerms } from '../contract/listing.ts'
import { amount, accountId } from '../contract/transfer.ts'
import { storeOf } from '../../../store/store.ts'
import { findGoods, stateOfGoods } from '../goods.ts'
import { sell } from '../goods/sell.ts'
import { artifactOf } from '../deals/records.ts'
import { searchListings } from '../store/listings.ts'
import { measureListings } from '../discovery/measure.ts'

const MOST_FOUND = 20

/** The methods of `genesis_store`; `update_agent_config` is the tool of that name. */
const storeTools = (desk: Desk) => ({
  'genesis_store.search': defineTool({
    repeatable: true,
    description: 'Searches what is for sale, with figures that the platform measured and the reasons of its rank. Code is not shown.',
    input: z.strictObject({
      q: z.string().min(1).max(100).optional(),
      kind: z.enum(goodsKinds).optional(),
      type: z.string().min(1).max(128).optional().describe('A type of event that it handles.'),
      max_price: z.int().min(0).optional(),
      sort: z.enum(listingSorts).default('rank'),
    }),
    async execute(query, { now }) {
      const db = storeOf(desk.env)
      await measureListings(db, now())
      const { items } = await searchListings(db, { ...query, limit: MOST_FOUND, now: now() })
      return { listings: items }
    },
  }),
})

/** The methods of `genesis_ledger`. */
const ledgerTools = (desk: Desk) => ({
  'genesis_ledger.balance': defineTool({
    repeatable: true,
    description: 'Reads your account: its balance in scrip, and what of it is available.',
    input: z.strictObject({}),
    async execute() {
      const { balance = 0, available = 0 } = (await desk.ledger.account(desk.account)) ?? {}
      return { account: desk.account, balance, available }
    },
  }),
  'genesis_ledger.transfer': defineTool({
    keyed_by_call: true,
    description: 'Pays scrip from your account to another one: scope:NAME, key:NAME or key:ID.',
    input: z.strictObject({ to: accountId, amount, memo: z.string().max(500).optional() }),
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

const deal_id = z.string().min(1).max(128)
const reason = z.string().max(500).optional()

/** The methods of `genesis_escrow`. Decisions have the deal as their key. */
const escrowTools = (desk: Desk) => ({ ...selling(desk), ...buying(desk) })

function selling(desk: Desk) {
  return {
    'genesis_escrow.list': defineTool({
      keyed_by_call: true,
      description: 'Lists a version of a reflex or skill that you own for sale: a licence to run it, a copy of its code, or its ownership.',
      input: z.strictObject({ artifact: artifactReference, kind: z.enum(goodsKinds), price: amount, terms: listingTerms.optional() }),
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
    'genesis_escrow.unlist': defineTool({
      idempotence_key: ({ listing_id }) => `unlist:${listing_id}`,
      description: 'Withdraws a listing of yours. Its open offers end, and their money returns.',
      input: z.strictObject({ listing_id: deal_id }),
      async execute({ listing_id }) {
        const listing = await desk.ledger.listing(listing_id)
        if (listing?.seller !== desk.account) throw new Error(`you have no listing ${listing_id}`)
        return made(await desk.ledger.unlist(listing_id, { reason: 'its seller withdrew it' })).listing
      },
    }),
    'genesis_escrow.accept': defineTool({
      idempotence_key: (input) => `accept:${input.deal_id}`,
      description: 'Accepts an offer for what you sell. The payment and the delivery are one step.',
      input: z.strictObject({ deal_id }),
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
    'genesis_escrow.reject': defineTool({
      idempotence_key: (input) => `reject:${input.deal_id}`,
      description: 'Rejects an offer for what you sell. The money returns to the buyer.',
      input: z.strictObject({ deal_id, reason }),
      execute: async (input) =>
        made(await desk.ledger.decide(input.deal_id, 'reject', { account: desk.account, reason: input.reason })).deal,
    }),
  }
}

function buying(desk: Desk) {
  return {
    'genesis_escrow.offer': defineTool({
      keyed_by_call: true,
      description: 'Offers to buy what a listing sells, at its price or another. The money is reserved until the seller answers.',
      input: z.strictObject({ listing_id: deal_id, price: amount.optional() }),
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
    'genesis_escrow.cancel': defineTool({
      idempotence_key: (input) => `cancel:${input.deal_id}`,
      description: 'Cancels an offer of yours that waits for an answer. The money returns.',
      input: z.strictObject({ deal_id, reason }),
      execute: async (input) =>
        made(await desk.ledger.decide(input.deal_id, 'cancel', { account: desk.account, reason: input.reason })).deal,
    }),
  }
}

const contract_id = z.string().min(1).max(128)

/** The methods of `genesis_contracts`. */
const contractTools = (desk: Desk) => ({
  'genesis_contracts.propose': defineTool({
    keyed_by_call: true,
    description: 'Proposes to pay another scope for each call of a skill or reflex of it.',
    input: newContract.omit({ id: true, proposer: true }),
    async execute(asked, call) {
      const amount = asked.price_per_invocation * asked.limit
      await desk.demandAllowance({ tool: 'genesis_contracts.propose', input: asked, to: asked.counterparty, amount }, call)
      const id = desk.idOf(call)
      return made(await desk.ledger.propose({ ...asked, id, proposer: desk.account }, await desk.caller(asked.counterparty))).contract
    },
  }),
  'genesis_contracts.accept': deciding(
    desk,
    'accept',
    'Accepts a contract that another scope proposes to you.',
    async ({ contract_id: id, ...rest }, call) => {
      const contract = await desk.ledger.contract(id)
      if (contract?.counterparty !== desk.account || contract.status !== 'proposed') return
      const { proposer: to, service, price_per_invocation: amount, limit } = contract
      const gives = `${limit} calls of ${service}, for this price each`
      const input = { contract_id: id, ...rest }
      await desk.demandConsent({ tool: 'genesis_contracts.accept', input, to, amount, gives }, service, call)
    },
  ),
  'genesis_contracts.reject': deciding(desk, 'reject', 'Rejects a contract that another scope proposes to you.'),
  'genesis_contracts.end': deciding(desk, 'end', 'Ends a contract of yours: there are no further calls.'),
  'genesis_contracts.dispute': deciding(desk, 'dispute', 'Disputes a contract. A person gets the traces of both sides; the calls end.'),
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

const answer = contractReason.extend({ contract_id })
type Decision = 'accept' | 'reject' | 'end' | 'dispute'

/** `demand` throws if the decision needs a person. */
function deciding(
  desk: Desk,
  decision: Decision,
  description: string,
  demand?: (input: z.infer<typeof answer>, call: ToolCall) => Promise<void>,
) {
  return defineTool({
    idempotence_key: (input) => `${decision}:${input.contract_id}`,
    description,
    input: answer,
    execute: async (input, call) => {
      await demand?.(input, call)
      const by = { account: desk.account, reason: input.reason, traces: input.traces }
      return made(await desk.ledger.decideContract(input.contract_id, decision, by)).contract
    },
  })
}

type Invoked = { service: string; input: Record<string, unknown>; invocation_id: string; trace: ServiceCall['trace'] }

/** Reserves the price, has the provider serve the call, and pays if it did. */
async function invoke(desk: Desk, { service, input, invocation_id, trace }: Invoked): Promise<unknown> {
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
  const desk = new Desk(parts)
  return { ...ledgerTools(desk), ...storeTools(desk), ...escrowTools(desk), ...contractTools(desk) }
}
