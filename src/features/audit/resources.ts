import { z } from 'zod'
import { operations, type Resource } from '../../contract/operation.ts'
import { instant, toolPage, toolTime } from '../../contract/operations/shared.ts'
import { byAge, paged } from '../../contract/paging.ts'
import { scopePattern } from '../../contract/principal.ts'
import { action } from './contract.ts'
import { page } from './page.ts'

const names = {
  key: z.string().min(1).max(128).optional().describe('The id or the name of a key.'),
  action: z.string().min(1).max(64).optional().describe('The operationId of a request, such as `deleteKey`.'),
}

export const list = operations({ tag: 'Audit', roles: ['operator'] })(page.at, 'listActions', 'List the actions of people, newest first', {
  description:
    'Each change that was made with a key, by who, when and on what; never what the request contained. A key sees the changes of scopes that it covers. ' +
    'A change of a key, or of anything else without a scope, is seen by the keys that cover all scopes of the key that made it. ' +
    'Kept for a year, at most the newest 10,000 of each key.',
  query: byAge({
    scope: scopePattern.optional().describe('In scopes that the pattern matches.'),
    ...names,
    since: instant.optional().describe('Actions at or after this time.'),
    until: instant.optional().describe('Actions before this time.'),
  }),
  answers: { 200: [paged(action), 'A page.'] },
  mcp: {
    name: 'who_changed_what',
    title: 'Changes by people',
    description:
      'Changes that people made with their keys, newest first: settings, approvals, keys, switches of reflexes. For what came before an incident.',
    input: { scope: scopePattern.optional(), ...names, since: toolTime, until: toolTime, ...toolPage },
  },
  command: { usage: 'list', flags: page.flags, table: { columns: page.columns, empty: page.empty } },
})

const audit = { noun: 'audit', help: 'The changes that people made with their keys', verbs: [list] } satisfies Resource
export const resources = [audit]
