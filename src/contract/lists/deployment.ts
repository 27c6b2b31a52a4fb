import type { z } from 'zod'
import type { deadLetter, deadLetterGroup } from '../event-record.ts'
import type { FilteredList, ItemList } from '../shown.ts'
import type { key } from '../principal.ts'

export const dead_letters = {
  at: 'get /v1/dlq',
  key: 'id',
  columns: [
    { title: 'Time', of: ({ dead_lettered_at }) => dead_lettered_at, kind: 'time' },
    { title: 'Id', of: ({ id }) => id, only: 'terminal' },
    { title: 'Scope', of: ({ scope }) => scope, kind: 'scope' },
    { title: 'Type', of: ({ type }) => type },
    { title: 'Tries', of: ({ attempts }) => attempts, kind: 'count' },
    { title: 'Error', of: ({ error }) => error, colour: () => 'red' },
  ],
  flags: [
    ['--scope <scope>', 'of one scope'],
    ['--type <type>', 'of one type of event'],
    ['--error <error>', 'of one error, as dlq groups shows it'],
  ],
} as const satisfies FilteredList<z.infer<typeof deadLetter>>

export const dead_letter_groups = {
  at: 'get /v1/dlq/groups',
  key: 'id',
  columns: [
    { title: 'Error', of: ({ error }) => error, colour: () => 'red' },
    { title: 'Type', of: ({ type }) => type, width: 10 },
    { title: 'Letters', of: ({ letters }) => letters, kind: 'count' },
    { title: 'Scopes', of: ({ scopes }) => scopes, kind: 'count' },
    { title: 'Newest', of: ({ last }) => last, kind: 'time' },
  ],
  flags: [['--scope <scope>', 'of one scope']],
} as const satisfies FilteredList<z.infer<typeof deadLetterGroup>>

export const keys = {
  at: 'get /v1/keys',
  key: 'id',
  columns: [
    { title: 'Id', of: ({ id }) => id, only: 'terminal' },
    { title: 'Name', of: ({ name }) => name },
    { title: 'Roles', of: ({ roles }) => roles.join(' ') },
    { title: 'Created', of: ({ created_at }) => created_at, kind: 'time' },
    { title: 'Expires', of: ({ expires_at }) => expires_at, kind: 'time' },
    { title: 'Last used', of: ({ used_at }) => used_at, kind: 'time' },
    { title: 'Scopes', of: ({ scopes: patterns }) => patterns.join(' ') },
  ],
} as const satisfies ItemList<z.infer<typeof key>>
