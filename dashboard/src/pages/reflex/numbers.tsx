import type { z } from 'zod'
import type { reflexMetrics } from '../../../../src/contract/reports/reflex-report.ts'
import { part, useGet } from '../../api/index.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { ScopeLink } from '../../ui/links.tsx'
import { compact, count, percent, usd } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Table, type TableColumn } from '../../ui/table.tsx'
import { Facts } from '../../ui/facts.tsx'

type Metrics = z.infer<typeof reflexMetrics>
type MetricsAnswer = {
  versions: (Metrics & { version: number })[]
  scopes: (Metrics & { scope: string; version: number })[]
  total: Metrics
}

/** The counters of a reflex: in all scopes of the key, and in each. */
export function Numbers({ id }: { id: string }) {
  const data = useGet<MetricsAnswer>(`/v1/reflexes/${part(id)}/metrics`)
  return (
    <Section title="Numbers">
      <Loaded data={data}>
        {({ total, scopes }) =>
          total.runs === 0 ? (
            <Empty title="It has not run yet.">
              <p>
                A scope runs the reflexes of its setting <code>reflexes</code>.
              </p>
            </Empty>
          ) : (
            <>
              <div class="card">
                <Facts of={total} columns={facts} />
              </div>
              <Scopes rows={scopes} />
            </>
          )
        }
      </Loaded>
    </Section>
  )
}

const facts: TableColumn<Metrics>[] = [
  { title: 'Runs', of: ({ runs }) => runs, kind: 'count' },
  { title: 'Fired', of: ({ fired, runs }) => `${count(fired)} (${percent(runs === 0 ? null : fired / runs)})` },
  {
    title: 'Agreement in shadow',
    of: ({ agreement, shadow }) => `${percent(agreement)} (${count(shadow.agreed)} of ${count(shadow.agreed + shadow.disagreed)} compared)`,
  },
  { title: 'Acted', of: ({ acted }) => acted, kind: 'count' },
  { title: 'Failed', of: ({ failed }) => failed || null, kind: 'count', colour: () => 'red' },
  { title: 'Overruled', of: ({ overruled }) => overruled, kind: 'count' },
  { title: 'Held back', of: ({ held_back }) => held_back, kind: 'count' },
  { title: 'Faulty runs', of: ({ passed }) => passed.error + passed.limit + passed.invalid_action, kind: 'count' },
  {
    title: 'Saved',
    of: (total) => `${compact(total.model_calls_saved)} model calls · ${compact(total.tokens_saved)} tokens · ${usd(total.cost_saved_usd)}`,
  },
  { title: 'Fuel, median and most', of: ({ fuel }) => `${compact(fuel.p50)} · ${compact(fuel.max)}` },
]

function Scopes({ rows }: { rows: MetricsAnswer['scopes'] }) {
  return (
    <Table
      label="By scope"
      rows={rows}
      keyOf={({ scope, version }) => `${scope}@${version}`}
      columns={[
        { title: 'Scope', cell: ScopeLink },
        { title: 'Version', cell: ({ version }) => version, width: 6, numeric: true },
        { title: 'Runs', of: ({ runs }) => runs, kind: 'count' },
        { title: 'Fired', of: ({ fired }) => fired, kind: 'count' },
        { title: 'Acted', of: ({ acted }) => acted, kind: 'count' },
        { title: 'In shadow', of: ({ shadow }) => shadow.fired, kind: 'count', width: 8 },
        { title: 'Agreement', of: ({ agreement }) => agreement, kind: 'share' },
        { title: 'Overruled', of: ({ overruled }) => overruled, kind: 'count', width: 8 },
      ]}
    />
  )
}
