import { incidentFile } from '../../../../src/contract/lists/incident.ts'
import type { TraceReport } from '../../../../src/contract/reports/trace.ts'
import { get, query, requestText } from '../../api/index.ts'

const AROUND_MS = 900_000
const MOST = 50

type Page = { items: { trace_id: string; status: string }[]; next_cursor: string | null }

/**
 * An incident as one file, as `reflex trace bundle` writes it: the traces of the scope within 15
 * minutes of this one, their receipts, alerts and dead letters.
 */
export async function incidentOf({ root: _root, ...own }: TraceReport) {
  const [scope = ''] = own.scopes
  const at = Date.parse(own.started_at)
  const [since, until] = [at - AROUND_MS, at + AROUND_MS].map((time) => new Date(time).toISOString())
  const found = await get<Page>(`/v1/traces${query({ scope, since, until, limit: MOST })}`)
  if (!found.ok) return found
  const { items, next_cursor } = found.value
  // A trace of now is in its scope before it is in the list.
  const summaries = items.some(({ trace_id }) => trace_id === own.trace_id) ? items : [own, ...items]
  const traces = []
  for (const summary of summaries) {
    const file = (what: string) => requestText('GET', `/v1/traces/${summary.trace_id}/${what}${query({ scope })}`)
    const [recording, receipt] = await Promise.all([file('export'), file('receipt')])
    if (!recording.ok) return recording
    traces.push({ summary, recording: JSON.parse(recording.value) as unknown, receipt: receipt.ok ? receipt.value : null })
  }
  const noted = async (path: string) => {
    const page = await get<{ items: unknown[] }>(path)
    return page.ok ? page.value.items : null
  }
  const alerts = await noted(`/v1/alerts${query({ since, until, limit: MOST })}`)
  const dead_letters = await noted(`/v1/dlq${query({ scope, limit: MOST })}`)
  const noticed = { alerts, dead_letters, has_more: next_cursor !== null }
  return { ok: true as const, value: JSON.stringify(incidentFile({ scope, since, until, traces, ...noticed }, Date.now())) }
}
