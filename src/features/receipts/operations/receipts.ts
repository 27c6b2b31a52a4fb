import { z } from 'zod'
import { operations } from '../../../contract/operation.ts'
import { traceId } from '../../../contract/operations/shared.ts'
import { scopeName } from '../../../core/event.ts'
import { opening, publicKeys, receipt } from '../contract/receipt.ts'

const operation = operations({ tag: 'Traces', roles: ['viewer'] })

export const getReceipt = operation('get /v1/traces/{trace_id}/receipt', 'getReceipt', 'Get the signed receipt of a trace', {
  description:
    'One file with what the trace did and why, and the way from each log entry to a signed head of its log. Entries of other traces stay private. ' +
    '`reflex verify` checks it without a server, and makes the decisions again. The bytes are signed: keep the body as it is.',
  params: z.object({ trace_id: traceId.describe('32 hex digits, as in W3C trace context.') }),
  query: z.object({
    scope: scopeName.optional().describe('The scope whose log has the trace. By default those of its events and calls.'),
    neighbours: z
      .enum(['true', 'false'])
      .default('false')
      .describe('With the events of other traces that contexts and prompts quote. Else only their hashes are in it.'),
  }),
  answers: { 200: [receipt, 'The receipt.'] },
  problems: [404, 409],
})

export const openMask = operation('post /v1/traces/{trace_id}/opening', 'openMask', 'Get the salt of a masked value', {
  description:
    'For somebody who has the value of a masked field of a trace, and wants to prove it to others with the receipt. The value must stand masked in the log of ' +
    'the trace. Whoever may ask can test guesses, one a request, and each request is in the audit.',
  roles: ['admin'],
  params: z.object({ trace_id: traceId.describe('32 hex digits, as in W3C trace context.') }),
  query: z.object({ scope: scopeName.optional().describe('The scope whose log has the trace. By default those of its events and calls.') }),
  body: z.strictObject({ value: z.json().describe('The value, as it was before it was masked.') }),
  recursive: true,
  example: { value: 'the password' },
  answers: { 200: [opening, 'The salt.'] },
  problems: [404, 409],
})

export const getKeys = operation('get /.well-known/reflex-receipts.json', 'getReceiptKeys', 'Get the keys that sign receipts', {
  description: 'The public keys of this deployment, newest first. Keep a copy: a receipt is worth as much as the way you got the key.',
  roles: null,
  answers: { 200: [publicKeys, 'The keys.'] },
})
