import { z } from 'zod'
import { alertNames } from '../../contract/alert.ts'
import { operations, type Resource } from '../../contract/operation.ts'
import { instant, toolPage, toolTime } from '../../contract/operations/shared.ts'
import { byAge, paged } from '../../contract/paging.ts'
import { keptAlert } from './contract.ts'
import { page } from './page.ts'

const name = z.enum(alertNames).optional().describe('One kind of alerts.')

export const list = operations({ tag: 'Alerts', roles: ['viewer'] })(
  page.at,
  'listAlerts',
  'List the alerts of the deployment, newest first',
  {
    description:
      'What the sweep found that somebody should know, once for each condition and hour. A key sees the alerts about scopes that it covers; ' +
      'others are seen by keys of all scopes. Kept for a year.',
    query: byAge({
      name,
      since: instant.optional().describe('Alerts at or after this time.'),
      until: instant.optional().describe('Alerts before this time.'),
    }),
    answers: { 200: [paged(keptAlert), 'A page.'] },
    mcp: {
      name: 'alerts',
      title: 'Alerts of the deployment',
      description: 'What somebody should know, newest first: models or tools that fail, budgets, dead letters, certificates that lapsed.',
      input: { name, since: toolTime, until: toolTime, ...toolPage },
    },
    command: { usage: 'list', flags: page.flags, table: { columns: page.columns, empty: page.empty } },
  },
)

const alerts = { noun: 'alerts', help: 'The alerts of the deployment', verbs: [list] } satisfies Resource
export const resources = [alerts]
