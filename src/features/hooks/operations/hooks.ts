import { z } from 'zod'
import { receipts } from '../../../contract/event-record.ts'
import { operations } from '../../../contract/operation.ts'
import { paged, pageLimit } from '../../../contract/paging.ts'
import { problem } from '../../../contract/problem.ts'
import { hook, hookAddress, newHook } from '../contract/hook.ts'

const operation = operations({ tag: 'Hooks', roles: ['admin'] })
const params = z.object({ name: hookAddress.describe('The name of the hook, or its address.') })

export const put = operation('put /v1/hooks/{name}', 'putHook', 'Create or replace a hook', {
  description:
    'Deliveries to `POST /v1/hooks/ADDRESS` become events of its scope. The address is the name if the key covers all scopes. Otherwise the answer has it, ' +
    'and each scope has hooks of its own: no other tenant can take a name, or see it. ' +
    'Takes effect immediately at this location, and everywhere within 30 s. See docs/webhooks.md.',
  params,
  body: newHook,
  example: { scope: 'ci', scheme: 'github', when: 'has(body.commits)' },
  answers: { 200: [hook, 'The hook.'] },
  problems: [404, 409],
})

export const list = operation('get /v1/hooks', 'listHooks', 'List hooks, by address', {
  query: z.object({ limit: pageLimit(100), cursor: z.string().max(64).default('') }),
  answers: { 200: [paged(hook), 'A page, with the numbers of deliveries by result.'] },
})

export const find = operation('get /v1/hooks/{name}', 'getHook', 'Get a hook', {
  params,
  answers: { 200: [hook, 'The hook.'] },
  problems: [404, 409],
})

export const remove = operation('delete /v1/hooks/{name}', 'deleteHook', 'Delete a hook', {
  params,
  answers: { 204: [null, 'Deleted.'] },
  problems: [404, 409],
})

const refused = [null, 'The delivery was refused.', { 'application/problem+json': problem }] as const

export const receive = operation('post /v1/hooks/{name}', 'receiveHook', 'Receive a delivery', {
  description:
    'For the systems that send webhooks: it needs no key, but the signature of its scheme. A repeated delivery is a duplicate, with the receipts of the first. ' +
    'A refused delivery changes nothing. A delivery that the hook ignores has no receipt.',
  roles: null,
  params,
  answers: {
    200: [z.object({ challenge: z.string() }), 'The text that Slack asks for when its address is entered.'],
    202: [receipts, 'The receipts of its events.'],
  },
  refusals: { 400: refused, 401: refused, 404: refused, 413: refused, 415: refused, 429: refused, 503: refused },
})
