import { useSignal } from '@preact/signals'
import { useLocation } from 'preact-iso'
import type { z } from 'zod'
import type { DecisionMade } from '../../../../src/features/decisions/contract/entry.ts'
import type { shownCertificate } from '../../../../src/contract/certificate.ts'
import { part, useGet } from '../../api/index.ts'
import { Empty, Loaded } from '../../ui/feedback.tsx'
import { Field } from '../../ui/form.tsx'
import { TraceLink } from '../../ui/links.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Table } from '../../ui/table.tsx'
import { visible } from '../../ui/text.tsx'
import { Entries } from '../reflex/entries.tsx'
import { Proofs } from '../reflex/proofs.tsx'
import type { RateStatistics } from '../reflexes/rates.tsx'
import { actionText } from '../trace/spans.ts'

type Proof = z.infer<typeof shownCertificate> & { scope: string; version: number }
type DecisionEntry = DecisionMade & { seq: number; at: string; trace_id: string; span_id: string }

/** Decision models have the names that the log gives them; reflexes cannot have such ids. */
const PREFIX = 'decision:'

export default function DecisionsPage() {
  const asked = useGet<RateStatistics>('/v1/stats?metric=reflex.runs&by=reflex&bucket=all')
  const decided = useGet<RateStatistics>('/v1/stats?metric=reflex.fires&by=reflex&bucket=all')
  const { query } = useLocation()
  return (
    <Page title="Decision models">
      <Loaded data={asked}>
        {({ series }) => {
          const models = series.flatMap(({ label, total }) => (label?.startsWith(PREFIX) ? [{ id: label, runs: total ?? 0 }] : []))
          const shown = query['id'] ?? models[0]?.id
          return (
            <>
              {models.length === 0 ? <NoModel /> : <Models models={models} fires={decided.value} />}
              {shown !== undefined && <Shown key={shown} id={shown} />}
            </>
          )
        }}
      </Loaded>
    </Page>
  )
}

const NoModel = () => (
  <Empty title="No decision model has been asked yet.">
    <p>
      A scope asks one between its reflexes and its turns. Name the question and the action for each answer in its setting{' '}
      <code>decision_model</code>, on the page of the <a href="/scopes">scope</a>.
    </p>
  </Empty>
)

function Models({ models, fires }: { models: { id: string; runs: number }[]; fires: RateStatistics | undefined }) {
  const of = (id: string) => fires?.series.find(({ label }) => label === id)?.total ?? 0
  return (
    <Table
      label="All decision models"
      rows={models}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Name', cell: ({ id }) => <a href={`/decisions?id=${part(id)}`}>{visible(id.slice(PREFIX.length))}</a> },
        { title: 'Asked', of: ({ runs }) => runs, kind: 'count', width: 8 },
        { title: 'Decided', of: ({ id }) => of(id), kind: 'count', width: 8 },
        { title: 'Share', of: ({ id, runs }) => (runs === 0 ? null : of(id) / runs), kind: 'share' },
      ]}
    />
  )
}

function Shown({ id }: { id: string }) {
  const proofs = useGet<{ items: Proof[] }>(`/v1/certificates?id=${part(id)}`)
  const scope = useSignal('')
  return (
    <>
      <h2>{visible(id.slice(PREFIX.length))}</h2>
      <Loaded data={proofs}>
        {({ items }) => (
          <>
            <Proofs certificates={items} />
            <Section
              title="What it decided"
              actions={<Field label="Another scope" stacked={false} value={scope.value} onInput={(text) => (scope.value = text)} />}
            >
              <Entries<DecisionEntry>
                scopes={[...new Set([scope.value, ...items.map((item) => item.scope)].filter(Boolean))]}
                kinds={{ 'decision-made': 'Decisions' }}
                match={({ middle }) => middle?.decision_id === id}
              >
                {(entries) => <Decisions entries={entries} />}
              </Entries>
            </Section>
          </>
        )}
      </Loaded>
    </>
  )
}

const Decisions = ({ entries }: { entries: DecisionEntry[] }) => (
  <Table
    label="Its decisions"
    rows={entries}
    keyOf={({ seq }) => String(seq)}
    columns={[
      { title: 'When', of: ({ at }) => at, kind: 'time' },
      { title: 'Probability', of: ({ middle }) => middle?.score, kind: 'share' },
      { title: 'Needed', of: ({ middle }) => middle?.threshold, kind: 'share' },
      { title: 'Action', of: ({ middle }) => actionText(middle?.action) },
      { title: 'Left to a turn because', of: ({ middle, error }) => middle?.detail ?? middle?.left ?? error ?? '' },
      { title: 'Trace', cell: ({ trace_id, span_id }) => <TraceLink id={trace_id} span={span_id} />, width: 5 },
    ]}
  />
)
