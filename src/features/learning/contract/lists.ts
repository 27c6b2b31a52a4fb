import type { z } from 'zod'
import type { ItemList } from '../../../contract/shown.ts'
import type { listedRun } from './runs.ts'

export const runs = {
  at: 'get /v1/learn/runs',
  key: 'run_id',
  columns: [
    { title: 'Run', of: ({ run_id }) => run_id, only: 'terminal' },
    { title: 'Scope', of: ({ scope }) => scope, kind: 'scope' },
    { title: 'Status', of: ({ status }) => status, kind: 'status', colour: ({ status }) => (status === 'failed' ? 'red' : 'dim') },
    { title: 'By', of: ({ by }) => by, width: 8 },
    { title: 'Started', of: ({ started_at }) => started_at, kind: 'time', to: ({ run_id }) => `/learning?run=${run_id}` },
    { title: 'Read', of: ({ episodes }) => episodes.read, kind: 'count', only: 'page' },
    { title: 'Found', of: ({ found }) => found, kind: 'count' },
    { title: 'Answer', of: ({ answer }) => answer },
  ],
} as const satisfies ItemList<z.infer<typeof listedRun>>
