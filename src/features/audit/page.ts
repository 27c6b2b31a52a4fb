import type { ListPage } from '../../contract/operation.ts'
import type { PersonAction } from './contract.ts'

export const page = {
  at: 'get /v1/audit',
  key: 'id',
  path: '/audit',
  title: 'Audit',
  needs: 'operator',
  says: 'Each change that was made with a key that you may see, newest first. What a request contained is not kept.',
  empty: 'No action matches.',
  columns: [
    { title: 'Time', of: ({ at }) => at, kind: 'time' },
    { title: 'Key', of: ({ key_name }) => key_name, width: 12 },
    { title: 'Role', of: ({ role }) => role, width: 7 },
    { title: 'Action', of: ({ action }) => action, width: 14 },
    { title: 'Scope', of: ({ scope }) => scope, kind: 'scope' },
    { title: 'Target', of: ({ target }) => target },
    { title: 'Key id', of: ({ key_id }) => key_id, width: 12 },
    { title: 'Trace', of: ({ trace_id }) => trace_id, to: ({ trace_id }) => `/traces/${trace_id}` },
  ],
  flags: [
    ['--scope <pattern>', 'in scopes that the pattern matches, such as shop/*'],
    ['--key <key>', 'with one key, by its id or name'],
    ['--action <action>', 'one kind of change, such as deleteKey'],
    ['--since <time>', 'at or after a time: 10m ago, or an ISO time', { is: 'instant' }],
    ['--until <time>', 'before a time: 10m ago, or an ISO time', { is: 'instant' }],
  ],
} as const satisfies ListPage<PersonAction>
