import type { ModelCallReport } from '../../../src/contract/reports/health.ts'

/** The answer of `GET /health/detailed`, as far as pages show it. Null: D1 did not answer. */
export type ServerHealth = {
  status: 'ok' | 'degraded'
  database: Part
  queue: Part
  archive: Part | null
  inboxes: { scopes: number; open: number; largest: { scope: string; agent: string; open: number }[] } | null
  parked: { scopes: number; work: number } | null
  dead_letters: { total: number } | null
  ledger: { bytes: number; retention_days: number | null } | null
  skills: { active: number; failed: number; warning: string | null } | null
  retention: { days: number | null; backlog: number; packs: { kept_days: number | null; leave_in_days: number | null } } | null
  control_plane: { url: string; status: 'waiting' | 'ok' | 'degraded'; error: string | null; failing_since: string | null } | null
  model: string
  model_error: string | null
  model_calls: ModelCallReport | null
  agents: string[]
  event_types: string[]
  deployment: {
    bindings: { missing: string[] }
    schema: 'fits' | 'outdated' | 'unknown'
    schema_error: string | null
    database_bytes: number | null
    secrets: { name: string; problem: string | null }[] | null
  } | null
}
type Part = { ok: boolean; duration_ms: number; error: string | null }
