import type { z } from 'zod'
import type { reflexMetrics } from '../../../../src/contract/reports/reflex-report.ts'
import { part, useGet } from '../../api/index.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { ScopeLink } from '../../ui/links.tsx'
import { compact, count, percent, usd } from '../../ui/numbers.ts'
import { Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { Fact, Facts } from '../../ui/text.tsx'

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
                <Total total={total} />
              </div>
              <Scopes rows={scopes} />
            </>
          )
        }
      </Loaded>
    </Section>
  )
}

function Total({ total }: { total: Metrics }) {
  const { runs, fired, passed, acted, failed, overruled, held_back, shadow, agreement, fuel } = total
  const faults = passed.error + passed.limit + passed.invalid_action
  return (
    <Facts>
      <Fact name="Runs">{count(runs)}</Fact>
      <Fact name="Fired">
        {count(fired)} ({percent(runs === 0 ? null : fired / runs)})
      </Fact>
      <Fact name="Agreement in shadow">
        {percent(agreement)} ({count(shadow.agreed)} of {count(shadow.agreed + shadow.disagreed)} compared)
      </Fact>
      <Fact name="Acted">
        {count(acted)}
        {failed > 0 && <span class="bad"> · {count(failed)} failed</span>}
      </Fact>
      <Fact name="Overruled">{count(overruled)}</Fact>
      <Fact name="Held back">{count(held_back)}</Fact>
      <Fact name="Faulty runs">{count(faults)}</Fact>
      <Fact name="Saved">
        {compact(total.model_calls_saved)} model calls · {compact(total.tokens_saved)} tokens · {usd(total.cost_saved_usd)}
      </Fact>
      <Fact name="Fuel, median and most">
        {compact(fuel.p50)} · {compact(fuel.max)}
      </Fact>
    </Facts>
  )
}

function Scopes({ rows }: { rows: MetricsAnswer['scopes'] }) {
  return (
    <Table
      label="By scope"
      rows={rows}
      keyOf={({ scope, version }) => `${scope}@${version}`}
      columns={[
        { title: 'Scope', cell: ScopeLink },
        { title: 'Version', cell: ({ version }) => version, width: '6rem', numeric: true },
        { title: 'Runs', cell: ({ runs }) => count(runs), width: '6rem', numeric: true },
        { title: 'Fired', cell: ({ fired }) => count(fired), width: '6rem', numeric: true },
        { title: 'Acted', cell: ({ acted }) => count(acted), width: '6rem', numeric: true },
        { title: 'In shadow', cell: ({ shadow }) => count(shadow.fired), width: '8rem', numeric: true },
        { title: 'Agreement', cell: ({ agreement }) => percent(agreement), width: '8rem', numeric: true },
        { title: 'Overruled', cell: ({ overruled }) => count(overruled), width: '8rem', numeric: true },
      ]}
    />
  )
}
