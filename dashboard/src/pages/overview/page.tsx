import type { z } from 'zod'
import type { statisticsSummary } from '../../../../src/contract/reports/statistics.ts'
import { query, useGet, type Data } from '../../api/index.ts'
import type { Health } from '../../api/health.ts'
import { Loaded } from '../../ui/feedback.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Tabs, useTab } from '../../ui/tabs.tsx'
import { Decided } from './decided.tsx'
import { Incidents, Largest, Levels, Now } from './now.tsx'
import { Models } from './models.tsx'
import { ToolFailures } from './tool-failures.tsx'
import './overview.css'

export type Summary = z.infer<typeof statisticsSummary>
/** A metric over time, by its name. */
export type Metrics = Readonly<Record<string, Summary['metrics'][number]>>

const METRICS =
  'events.accepted,events.by_filter,events.by_reflex,events.by_decision,events.by_turn,events.by_condition,events.dead_lettered,' +
  'turns,turns.failed,effects,effects.failed,gate.p50_ms,replays.compared,replays.changed,reflexes.p95_ms,reflexes.audits,reflexes.audits_disagreed,' +
  'model.calls,model.failures,model.input_tokens,model.output_tokens,model.cost_usd,model.unpriced_calls,' +
  'reflexes.saved_model_calls,reflexes.saved_tokens,reflexes.saved_cost_usd'

const RECENT = '/v1/stats/summary?metrics=events.accepted&bucket=minute'

export const ranges = [
  { id: 'hour', text: 'Last hour', bucket: 'minute' },
  { id: 'day', text: 'Last day', bucket: 'hour' },
  { id: 'month', text: 'Last 30 days', bucket: 'day' },
] as const

const POLL_MS = 5000

export default function OverviewPage() {
  const chosen = useTab(
    ranges.map(({ id }) => id),
    'range',
  )
  const { bucket } = ranges.find(({ id }) => id === chosen) ?? ranges[0]
  // In the order in which they are needed: D1 answers one after the other.
  const health = useGet<Health>('/health/detailed', { every_ms: POLL_MS })
  const summary = useGet<Summary>(`/v1/stats/summary${query({ metrics: METRICS, bucket })}`, { every_ms: 2 * POLL_MS })
  const minutes = useGet<Summary>(bucket === 'minute' ? null : RECENT, { every_ms: POLL_MS })
  const recent = bucket === 'minute' ? summary : minutes
  return (
    <Page title="Overview" actions={<Tabs label="Time range" tabs={ranges} parameter="range" />}>
      <Now health={health} recent={recent} />
      <Loaded data={health}>{(value) => <Incidents health={value} />}</Loaded>
      <Loaded data={summary}>{(value) => <Figures summary={value} health={health} />}</Loaded>
    </Page>
  )
}

type FiguresProps = { summary: Summary; health: Data<Health> }

function Figures({ summary, health }: FiguresProps) {
  const metrics: Metrics = Object.fromEntries(summary.metrics.map((metric) => [metric.metric, metric]))
  const totals = Object.fromEntries(summary.metrics.map(({ metric, total }) => [metric, total]))
  return (
    <>
      <Decided totals={totals} />
      <Models metrics={metrics} summary={summary} />
      <ToolFailures bucket={summary.bucket} />
      <div class="columns">
        <Section title="Service levels">
          <Levels totals={totals} health={health.value} />
        </Section>
        <Section title="Largest inboxes">
          <Largest health={health.value} />
        </Section>
      </div>
    </>
  )
}
