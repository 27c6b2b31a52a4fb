import type { ListPage } from '../../contract/shown.ts'
import type { PersonAction } from './contract.ts'

export const page = {
  at: 'get /v1/audit',
  key: 'id',
  title: 'Audit',
  needs: 'operator',
  empty: 'No action matches.',
  columns: [
    { title: 'Time', of: ({ at }) => at, kind: 'time' },
    { title: 'Key', of: ({ key_name }) => key_name },
    { title: 'Role', of: ({ role }) => role, width: 7 },
    { title: 'Action', of: ({ action }) => action },
    { title: 'Scope', of: ({ scope }) => scope, kind: 'scope' },
    { title: 'Target', of: ({ target }) => target },
    { title: 'Key id', of: ({ key_id }) => key_id },
    { title: 'Trace', of: ({ trace_id }) => trace_id, to: ({ trace_id }) => `/traces/${trace_id}` },
  ],
  flags: [
    ['--scope <pattern>', 'in scopes such as shop/*'],
    ['--key <key>', 'by its id or name'],
    ['--action <action>', 'such as deleteKey'],
    ['--since <time>', 'at or after a time: 10m ago, or an ISO time', { is: 'instant' }],
    ['--until <time>', 'before a time: 10m ago, or an ISO time', { is: 'instant' }],
  ],
} as const satisfies ListPage<PersonAction>
