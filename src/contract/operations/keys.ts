import { z } from 'zod'
import * as lists from '../lists/deployment.ts'
import { operations, type Resource } from '../operation.ts'
import { byAge, paged } from '../paging.ts'
import { key, newKey, ownKey } from '../principal.ts'

const operation = operations({ tag: 'Keys', roles: ['admin'] })

export const create = operation('post /v1/keys', 'createKey', 'Create a key', {
  description: 'The key is shown only once; only its hash is stored. The creating key must cover its scopes.',
  problems: [409],
  body: newKey,
  example: { name: 'ci', roles: ['publisher'], scopes: ['team-a/*'] },
  answers: { 201: [key.omit({ created_at: true, used_at: true }).extend({ key: z.string() }), 'The key.'] },
})

export const list = operation(lists.keys.at, 'listKeys', 'List keys, newest first', {
  query: byAge({}),
  answers: { 200: [paged(key), 'A page, without the keys themselves.'] },
  command: {
    usage: 'list',
    table: {
      columns: lists.keys.columns,
      empty: 'There are no keys.',
    },
  },
})

export const own = operation('get /v1/key', 'getOwnKey', 'Get the key of this request', {
  description: 'What the key may do, for programs that show it.',
  roles: ['viewer', 'publisher'],
  answers: { 200: [ownKey, 'Its name, roles and scopes.'] },
})

export const remove = operation('delete /v1/keys/{id}', 'deleteKey', 'Delete a key', {
  description:
    'Takes effect immediately at this location, and everywhere within 30 s. Sockets and streams opened with the key are closed within a minute of use. Its account in the ledger is closed.',
  params: z.object({ id: z.string().min(1).max(64) }),
  answers: { 204: [null, 'Deleted.'] },
  problems: [404],
  command: {
    usage: 'revoke <id...>',
    help: 'Delete keys, by id',
    shows: (_, [id]) => [`Revoked ${id}. It stops working everywhere within 30 seconds.`],
    done: 'revoked',
  },
})

export const keys: Resource = { noun: 'keys', help: 'Create, list and revoke keys (role admin)', verbs: [list, remove] }
