import { z } from 'zod'
import { accountId, amount, clientId } from './transfer.ts'

const scopeAccount = accountId.regex(/^scope:/, 'a contract is between two scopes: scope:NAME')

const contractStates = ['proposed', 'accepted', 'rejected', 'ended', 'disputed'] as const

const serviceReference = z
  .string()
  .max(200)
  .regex(/^(?:reflex|skill):[^@\s]+$/, 'a service is skill:ID or reflex:ID of the counterparty')

/** A contract: its proposer pays the counterparty for each call of a skill or reflex. */
export const newContract = z
  .strictObject({
    id: clientId(128),
    proposer: scopeAccount.describe('The account of the scope that calls, which pays.'),
    counterparty: scopeAccount.describe('The account of the scope whose skill or reflex is called.'),
    service: serviceReference,
    price_per_invocation: amount,
    limit: z.int().min(1).max(1_000_000).describe('Maximum number of calls.'),
  })
  .meta({ id: 'NewContract' })
export type NewContract = z.infer<typeof newContract>

export const contract = z
  .object({
    ...newContract.shape,
    id: z.string(),
    contract_id: z.string(),
    status: z.enum(contractStates),
    invocations: z.int(),
    paid: z.int(),
    reason: z.string().nullable(),
    created_at: z.iso.datetime(),
    ended_at: z.iso.datetime().nullable(),
    disputes: z.array(z.object({ by: z.string(), reason: z.string(), traces: z.array(z.string()), at: z.iso.datetime() })),
  })
  .meta({ id: 'Contract' })
export type Contract = z.infer<typeof contract>

export const contractReason = z.strictObject({
  reason: z.string().max(500).optional(),
  traces: z
    .array(z.string().regex(/^[0-9a-f]{32}$/))
    .max(20)
    .optional()
    .describe('For a dispute: ids of traces that show the fault.'),
})
