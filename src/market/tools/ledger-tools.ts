import { z } from 'zod'
import { accountId, amount } from '../../contract/market/transfer.ts'
import { defineTool } from '../../tools/define-tool.ts'
import type { Desk } from './desk.ts'

/** The methods of `genesis_ledger`. */
export const ledgerTools = (desk: Desk) => ({
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
