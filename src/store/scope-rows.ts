import { jsonChunks } from '../base/json.ts'

/** The scope's own row, as it reports it. Times in ms. */
export type ScopeReport = {
  scope: string
  agent: string
  open: number
  wake_at: number | null
  updated_at: number
  /** The start of the turn in flight. */
  turn_since?: number | null
  parked: number
  spans_exported: number
  spans_dropped: number
  /** 1 if it learns by itself. */
  learns?: 0 | 1
  /** The fields that it hides beside the usual ones, as JSON. */
  redact?: string | null
} & Partial<ModelReport>

/** The results of the scope's model calls. `model_ask_at`: the next call, if events wait. In ms. */
export type ModelReport = {
  model_answered_at: number | null
  model_failing_since: number | null
  model_failures: number
  model_error: string | null
  /** The failures of the deployment's model, which are not of one request. */
  model_lost: number
  /** The last answer of the deployment's model; 0: none. */
  model_served_at: number
  model_ask_at: number | null
}

const SCOPE_COLUMNS = [
  ...(['scope', 'agent', 'open', 'wake_at', 'updated_at', 'parked', 'spans_exported', 'spans_dropped', 'learns', 'turn_since'] as const),
  ...([
    'model_answered_at',
    'model_failing_since',
    'model_failures',
    'model_error',
    'model_lost',
    'model_served_at',
    'model_ask_at',
    'redact',
  ] as const),
] satisfies readonly (keyof ScopeReport)[]

/**
 * A newer report overtakes an older one by less: what is older still was made after a clock was set
 * back.
 */
const OVERTAKEN_MS = 300_000

const UPSERT_SCOPES = `INSERT INTO scopes (${SCOPE_COLUMNS.join(', ')})
    SELECT ${SCOPE_COLUMNS.map((name) => `value->>'${name}'`).join(', ')} FROM json_each(?1) WHERE true
  ON CONFLICT (scope) DO UPDATE SET ${SCOPE_COLUMNS.slice(1)
    .map((name) => `${name} = excluded.${name}`)
    .join(', ')}
  WHERE excluded.updated_at >= scopes.updated_at OR excluded.updated_at < scopes.updated_at - ${OVERTAKEN_MS}`

/** The statements that write the rows of scopes; a stale row changes nothing. */
export function scopeStatements(db: D1Database, scopes: readonly ScopeReport[]): D1PreparedStatement[] {
  const rows = scopes.map((scope) => JSON.stringify({ learns: 0, model_failures: 0, model_lost: 0, ...scope }))
  return jsonChunks(rows).map((chunk) => db.prepare(UPSERT_SCOPES).bind(chunk))
}
