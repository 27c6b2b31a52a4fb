import { z } from 'zod'
import { scopeName } from '../../core/event.ts'
import { deadLetter, deadLetterGroup } from '../event-record.ts'
import { dead_letter_groups, dead_letters } from '../lists/deployment.ts'
import { operations } from '../operation.ts'
import { byAge, paged, whole } from '../paging.ts'
import { byId, idPath, toolPage, toolScope } from './shared.ts'

const operation = operations({ tag: 'Dead letters', roles: ['operator'] })
/** Letters by what a person names. */
export const which = {
  scope: scopeName.optional(),
  type: z.string().min(1).max(128).optional(),
  error: z.string().min(1).max(200).optional().describe('The first line of the error, with `#` for each number, as groups have it.'),
}

export const list = operation(dead_letters.at, 'listDeadLetters', 'List dead letters, newest first', {
  description:
    'Messages without a scope are listed only for keys that cover every scope. With `error`, a page may be short although more follow.',
  query: byAge(which),
  mcp: {
    name: 'dead_letters',
    title: 'Dead letters',
    description: 'Events that were given up, with their content and the error.',
    input: { scope: toolScope.optional(), ...toolPage },
  },
  answers: { 200: [paged(deadLetter), 'A page.'] },
  command: {
    usage: 'list',
    flags: dead_letters.flags,
    table: {
      columns: dead_letters.columns,
      empty: 'There are no dead letters.',
    },
  },
})

export const groups = operation(dead_letter_groups.at, 'groupDeadLetters', 'Group dead letters by error', {
  description: 'The newest 10,000 dead letters by their error and type: the 100 largest groups, largest first.',
  query: z.object({ scope: scopeName.optional() }),
  answers: { 200: [whole(deadLetterGroup), 'The groups.'] },
  command: {
    usage: 'groups',
    flags: dead_letter_groups.flags,
    table: { columns: dead_letter_groups.columns, most: null, empty: 'There are no dead letters.' },
  },
})

export const find = operation('get /v1/dlq/{id}', 'getDeadLetter', 'Get a dead letter', {
  ...byId(deadLetter, 'The dead letter.'),
  command: {
    usage: 'show <id>',
    help: 'Show a dead letter with its event and stack trace',
    shows: ({ event, payload, stack, ...about }) => [
      about,
      ...(stack === null ? [] : ['', { as: 'text' as const, value: stack }]),
      '',
      event === undefined ? { as: 'text', value: payload ?? '' } : { as: 'json', value: event, indent: 2 },
    ],
  },
})

const failure = z.object({ id: z.string(), reason: z.string() })
export const retryMany = operation('post /v1/dlq/retry', 'retryDeadLetters', 'Retry dead letters', {
  description: 'Requeues the newest matches, at most `limit`. Their events return to their scopes with their attempts reset.',
  body: z.strictObject({ ...which, limit: z.int().min(1).max(1000).default(100) }),
  example: { scope: 'default' },
  answers: { 200: [z.object({ retried: z.int(), failed: z.array(failure) }), 'The number requeued, and the ones that could not be.'] },
})

export const retry = operation('post /v1/dlq/{id}/retry', 'retryDeadLetter', 'Retry a dead letter', {
  params: idPath,
  answers: {
    200: [z.object({ id: z.string(), scope: z.string(), event_id: z.string(), status: z.literal('retried') }), 'Requeued.'],
  },
  problems: [404, 409],
})

export const discard = operation('delete /v1/dlq/{id}', 'discardDeadLetter', 'Discard a dead letter', {
  description: 'Removes it from this list. The event stays in its scope as `dead_lettered`.',
  params: idPath,
  answers: { 204: [null, 'Discarded.'] },
  problems: [404],
  command: {
    usage: 'discard <ids...>',
    help: 'Remove dead letters; their events stay in their scopes as dead_lettered',
    shows: (_, [id]) => [`Discarded ${id}.`],
    done: 'discarded',
  },
})
