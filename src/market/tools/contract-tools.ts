import { z } from 'zod'
import { contractReason, newContract } from '../../contract/market/service.ts'
import type { Served, ServiceCall } from '../../contract/market/view.ts'
import { scopeOfOwner } from '../../contract/reflex.ts'
import { defineTool, type ToolCall } from '../../tools/define-tool.ts'
import { made, type Desk } from './desk.ts'

const contract_id = z.string().min(1).max(128)

/** The methods of `genesis_contracts`. */
export const contractTools = (desk: Desk) => ({
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
