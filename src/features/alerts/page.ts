import type { ListPage } from '../../contract/shown.ts'
import type { KeptAlert } from './contract.ts'

/** The scope, tool or model that the details name. */
const about = ({ details: { scopes, of } }: KeptAlert): string | null =>
  Array.isArray(scopes) ? scopes.join(', ') : typeof of === 'string' ? of : null

export const page = {
  at: 'get /v1/alerts',
  key: 'id',
  title: 'Alerts',
  needs: 'viewer',
  empty: 'No alert matches.',
  columns: [
    { title: 'Time', of: ({ at }) => at, kind: 'time' },
    { title: 'Alert', of: ({ name }) => name, width: 12 },
    { title: 'What', of: ({ summary }) => summary },
    { title: 'About', of: about, width: 16 },
  ],
  flags: [
    ['--name <name>', 'such as tool-failing'],
    ['--since <time>', 'at or after a time: 10m ago, or an ISO time', { is: 'instant' }],
    ['--until <time>', 'before a time: 10m ago, or an ISO time', { is: 'instant' }],
  ],
} as const satisfies ListPage<KeptAlert>
