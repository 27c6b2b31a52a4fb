/** The schema of a file about an incident, which `reflex verify` takes. */
export const INCIDENT = 'reflex/incident@1'

/** `receipt`: the text that is signed; null if the deployment signs nothing. */
type IncidentTrace = { summary: { status: string }; receipt: string | null }
type IncidentParts<Trace> = {
  scope: string
  since: string | undefined
  until: string | undefined
  traces: readonly Trace[]
  /** True if the time has further traces. */
  has_more: boolean
  /** Null where the key may not read them. */
  alerts: readonly unknown[] | null
  dead_letters: readonly unknown[] | null
}

/** An incident as one file: the traces of a scope in a time, with what was noted meanwhile. */
export function incidentFile<Trace extends IncidentTrace>(
  { scope, since, until, traces, has_more, alerts, dead_letters }: IncidentParts<Trace>,
  now: number,
) {
  const by_status: Record<string, number> = {}
  for (const { summary } of traces) by_status[summary.status] = (by_status[summary.status] ?? 0) + 1
  const receipts = traces.filter(({ receipt }) => receipt !== null).length
  const report = { traces: traces.length, has_more, by_status, receipts }
  return { schema: INCIDENT, scope, since, until, made_at: new Date(now).toISOString(), report, alerts, dead_letters, traces }
}
