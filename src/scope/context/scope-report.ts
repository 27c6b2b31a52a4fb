import type { Agent } from '../../agent/define-agent.ts'
import type { Settings } from '../../contract/settings/settings.ts'
import type { Inbox } from '../inbox/inbox.ts'
import type { Database } from '../storage/database.ts'
import { modelReport } from '../turns/model-calls.ts'
import { askAtIn } from '../turns/model-outage.ts'
import type { Guard } from '../upkeep/guard.ts'
import type { SpanExport } from '../replication/span-export.ts'

type Reported = {
  scope: string
  database: Database
  settings: Settings
  agent: Agent
  inbox: Inbox
  guard: Guard
  spans: SpanExport | null
}

/** The scope's row in D1. */
export const reportOf = ({ scope, database, settings, agent, inbox, guard, spans }: Reported) => ({
  scope,
  agent: agent.name,
  open: inbox.open,
  turn_since: database.read<{ since: number } | null>('turn', null)?.since ?? null,
  parked: guard.count,
  learns: settings.learning.mode === 'off' ? (0 as const) : (1 as const),
  spans_exported: spans?.state.exported ?? 0,
  spans_dropped: spans?.state.dropped ?? 0,
  ...modelReport(database, inbox.open > 0 ? askAtIn(database) : null),
})
