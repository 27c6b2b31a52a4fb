import { money } from '../../base/amounts.ts'
import type { ItemList } from '../shown.ts'
import type { ScopeSummary, ScopeTool } from '../scope.ts'
import type { Schedule, Timer } from '../settings/schedule.ts'

export const scopes = {
  at: 'get /v1/scopes',
  key: 'scope',
  columns: [
    { title: 'Scope', of: ({ scope }) => scope, kind: 'scope', width: 16 },
    { title: 'Agent', of: ({ agent }) => agent, width: 9 },
    { title: 'Open', of: ({ open }) => open, kind: 'count', colour: ({ open }) => (open > 0 ? 'yellow' : null) },
    { title: 'Turn since', of: ({ turn_since }) => turn_since, kind: 'time', only: 'page' },
    { title: 'Parked', of: ({ parked }) => parked, kind: 'count', colour: ({ parked }) => (parked > 0 ? 'red' : null), only: 'page' },
    { title: 'Model', of: ({ asks_model_at: at }) => (at ? `asked at ${at}` : ''), colour: () => 'yellow', only: 'terminal' },
    { title: 'Asks model', of: ({ asks_model_at }) => asks_model_at, kind: 'time', colour: () => 'yellow', only: 'page' },
    { title: 'Events', of: ({ accepted }) => accepted, kind: 'count', only: 'page' },
    { title: 'Fire rate', of: ({ fire_share }) => fire_share, kind: 'share', only: 'page' },
    { title: 'Cost', of: ({ cost_usd, unpriced_model_calls }) => money(cost_usd, unpriced_model_calls), width: 9 },
    { title: 'Updated', of: ({ updated_at }) => updated_at, kind: 'time' },
  ],
} as const satisfies ItemList<ScopeSummary>

export function scheduleText(when: Schedule): string {
  if ('every_s' in when) return `every ${when.every_s} s`
  return 'cron' in when ? `cron ${when.cron}` : `at ${when.at}`
}

export const timers = {
  at: 'get /v1/scopes/{scope}/timers',
  key: 'name',
  columns: [
    { title: 'Name', of: ({ name }) => name },
    { title: 'Next', of: ({ next_at }) => next_at, kind: 'time' },
    { title: 'Ticks', of: ({ fired }) => fired, kind: 'count' },
    { title: 'Schedule', of: ({ schedule }) => scheduleText(schedule) },
  ],
} as const satisfies ItemList<Timer>

const goesTo = ({ destinations, assumed }: ScopeTool): string => (destinations.join(', ') || 'none') + (assumed ? ' (assumed)' : '')

export const tools = {
  at: 'get /v1/scopes/{scope}/tools',
  key: 'name',
  columns: [
    { title: 'Tool', of: ({ name }) => name },
    { title: 'Acts', of: ({ acts }) => acts, width: 6 },
    { title: 'Destinations', of: goesTo },
    { title: 'Description', of: ({ description }) => description },
  ],
} as const satisfies ItemList<ScopeTool>
